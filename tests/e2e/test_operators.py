"""What operators see and say, in both layouts: gRPC by reflection alone, admin states, the catalogue, a lost answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from pointsman.health.v1 import health_service_pb2
from pointsman.health.v1.health_service_pb2_grpc import HealthServiceStub
from pointsman.runs.v1 import runs_service_pb2
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceStub
from tests.e2e.scenery import MODELS
from tests.support import books
from tests.support.stack import AllInOne, Stack
from tests.support.visitor import FIXED, until

BUF = Path(__file__).resolve().parents[2] / ".venv/bin/buf"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
LIMIT_S = 15.0
SERVICES = {
    "pointsman.edge.v1.AdmissionService",
    "pointsman.edge.v1.KeyService",
    "pointsman.runs.v1.RunsService",
    "pointsman.routing.v1.RoutingService",
    "pointsman.routing.v1.CatalogService",
    "pointsman.capacity.v1.CapacityService",
    "pointsman.health.v1.HealthService",
    "pointsman.cost_quote.v1.QuoteService",
    "pointsman.provider_adapter.v1.ProviderService",
}
INFRASTRUCTURE = {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"}


def bearer(stack: Stack) -> list[tuple[str, str]]:
    """The metadata of a caller with the admin key."""
    return [("authorization", f"Bearer {stack.key}")]


async def listed(stack: Stack, address: str) -> set[str]:
    """The services that reflection v1 lists at an address."""

    async def question() -> AsyncIterator[Any]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")

    async with aio.insecure_channel(address) as channel:
        ask = channel.stream_stream(
            REFLECTION,
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        async for answer in ask(question(), timeout=LIMIT_S, metadata=bearer(stack)):
            return {service.name for service in answer.list_services_response.service}
    return set()


async def curl(stack: Stack, service: str, method: str, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to `buf curl`, which knows the messages by reflection alone."""
    address = stack.address_of(service)
    target = ("--unix-socket", address.removeprefix("unix:")) if address.startswith("unix:") else ()
    host = "localhost" if target else address
    process = await asyncio.create_subprocess_exec(
        *(BUF, "curl", "--protocol", "grpc", "--http2-prior-knowledge", *target),
        *("--header", f"authorization: Bearer {stack.key}", "--data", json.dumps(body)),
        f"http://{host}/{service}/{method}",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(LIMIT_S):
        said, complained = await process.communicate()
    assert process.returncode == 0, complained.decode()
    answer: dict[str, Any] = json.loads(said)
    return answer


async def test_reflection_lists_every_service(stack: Stack) -> None:
    """OPS-4: each of the contract's services is listed where it is served, beside health and reflection itself."""
    seen = {service: await listed(stack, stack.address_of(service)) for service in SERVICES}
    assert {service for service, names in seen.items() if service in names} == SERVICES
    for service, names in seen.items():
        assert names >= INFRASTRUCTURE, service


async def test_health_per_service_name(stack: Stack) -> None:
    """OPS-4: grpc.health.v1 says SERVING for the process and for each service, and knows no others."""
    for service in SERVICES:
        async with aio.insecure_channel(stack.address_of(service)) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            for name in ("", service):
                answer = await health.Check(health_pb2.HealthCheckRequest(service=name), timeout=LIMIT_S)
                assert answer.status == health_pb2.HealthCheckResponse.SERVING, service
            with pytest.raises(aio.AioRpcError) as refused:
                await health.Check(health_pb2.HealthCheckRequest(service="pointsman.nobody"), timeout=LIMIT_S)
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND


async def test_buf_curl_without_any_schema(stack: Stack) -> None:
    """OPS-4, HLT-14, SEL-16: GetSnapshot, GetCapacity and ListSelections tell what the HTTP views tell."""
    run = await stack.api.finished(await stack.api.post_run("burst", "seen over gRPC"))
    task_id = run["nodes"][0]["task_id"]
    health = await curl(stack, "pointsman.health.v1.HealthService", "GetSnapshot", {})
    capacity = await curl(stack, "pointsman.capacity.v1.CapacityService", "GetCapacity", {})
    rounds = await curl(stack, "pointsman.routing.v1.RoutingService", "ListSelections", {"taskId": task_id})
    views = await stack.api.get("/v1/operator/health"), await stack.api.get("/v1/operator/capacity")
    for answer, view in zip((health, capacity), views, strict=True):
        for kind, sort in (("SUBJECT_KIND_CHANNEL", "channels"), ("SUBJECT_KIND_SUPPLY", "supplies")):
            ids = {item["subject"]["id"] for item in answer["subjects"] if item["subject"]["kind"] == kind}
            assert ids == {item["id"] for item in view[sort]}
    (chosen,) = (item["chosenSupplyId"] for item in rounds["selections"])
    assert chosen == run["usage"]["supply"]


@pytest.mark.parametrize("started", [AllInOne], ids=["all-in-one"], indirect=True)
async def test_the_public_port_asks_for_a_key(stack: Stack) -> None:
    """AUTH-1: over TCP a key is asked for as over HTTP; none, a wrong one, too small a scope, a foreign tenant fail."""
    body = {"tenant": "caller", "scopes": ["runs"]}
    key = (await stack.api.call("POST", "/v1/operator/keys", body=body))["key"]
    run_id = await stack.api.post_run("steady", "not yours")
    await stack.api.finished(run_id)
    async with aio.insecure_channel(stack.grpc) as channel:
        health, runs = HealthServiceStub(channel), RunsServiceStub(channel)
        snapshot, foreign = health_service_pb2.GetSnapshotRequest(), runs_service_pb2.GetRunRequest(run_id=run_id)
        refusals = (
            (health.GetSnapshot, snapshot, "", grpc.StatusCode.UNAUTHENTICATED),
            (health.GetSnapshot, snapshot, "pm_wrong", grpc.StatusCode.UNAUTHENTICATED),
            (health.GetSnapshot, snapshot, key, grpc.StatusCode.PERMISSION_DENIED),
            (runs.GetRun, foreign, key, grpc.StatusCode.PERMISSION_DENIED),
        )
        for method, request, secret, code in refusals:
            with pytest.raises(aio.AioRpcError) as refused:
                await method(request, timeout=LIMIT_S, metadata=[("authorization", f"Bearer {secret}")])
            assert refused.value.code() is code, method
        foreign.tenant = "caller"
        with pytest.raises(aio.AioRpcError) as missing:
            await runs.GetRun(foreign, timeout=LIMIT_S, metadata=[("authorization", f"Bearer {key}")])
        assert missing.value.code() is grpc.StatusCode.NOT_FOUND
        assert (await health.GetSnapshot(snapshot, timeout=LIMIT_S, metadata=bearer(stack))).subjects


async def test_decisions_replay_and_move(stack: Stack) -> None:
    """SEL-22, SEL-23: a decision of the live stack replays to its bytes, over gRPC too; without the Supply that it
    chose it would have gone to the spare one."""
    run = await stack.api.finished(await stack.api.post_run("proper", "to be decided again"))
    task_id, chosen = run["nodes"][0]["task_id"], run["usage"]["supply"]
    replay = await stack.api.get(f"/v1/tasks/{task_id}/replay")
    assert replay["identical"]
    told = await curl(stack, "pointsman.routing.v1.RoutingService", "ReplaySelection", {"taskId": task_id})
    assert [item["decisionDigest"] for item in told["rounds"]] == [item["decision_digest"] for item in replay["rounds"]]
    drained = yaml.safe_load(stack.setting.catalog(stack.studio_url))
    (supply,) = (item for item in drained["supplies"] if item["id"] == chosen)
    supply["admin"] = "draining"
    asked = {"catalog": yaml.safe_dump(drained), "since_s": 3600, "model": "proper"}
    found = await stack.api.call("POST", "/v1/operator/whatif", body=asked, query={"page_size": 1000})
    moved = {item["task_id"]: (item["from_choice"], item["to_choice"]) for item in found["examples"]}
    assert moved[task_id] == (chosen, "prim-spare/clip")


async def test_an_operator_takes_a_supply_out_of_use(stack: Stack) -> None:
    """CAT-5, SEL-4: a disabled Supply takes no new work and the record says why; enabled again it serves."""
    supply = "/v1/operator/supplies/prim%2Fclip"
    assert (await stack.api.ask("POST", f"{supply}:disable")).status == 200
    run = await stack.api.finished(await stack.api.post_run("proper", "while the first one is out"))
    assert (run["status"], run["usage"]["supply"], run["usage"]["attempts"]) == ("succeeded", "prim-spare/clip", 1)
    fates = {item["supply"]: item for item in (await stack.api.selections_of(run["id"]))[-1]["candidates"]}
    assert (fates["prim/clip"]["step"], fates["prim/clip"]["reason"]) == ("SEL-4", "disabled")
    assert fates["prim/clip"]["figures"]
    assert (await stack.api.ask("POST", f"{supply}:enable")).status == 200
    await until(lambda: stack.api.health_of("supplies", "prim/clip"), lambda line: line["state"] == "healthy")
    again = await stack.api.finished(await stack.api.post_run("proper", "now it is back"))
    assert again["usage"]["supply"] == "prim/clip"


async def test_a_bad_catalogue_changes_nothing(stack: Stack) -> None:
    """CAT-1: every fault is named by its path, and nothing changes."""
    before = await stack.api.get("/v1/operator/catalog")
    text = stack.setting.catalog(stack.studio_url).replace("supply: lossy/clip", "supply: nobody/clip")
    yaml = {"content-type": "application/yaml"}
    refused = await stack.api.ask("POST", "/v1/operator/catalog:apply", data=text.encode(), headers=yaml)
    assert (refused.status, refused.json["code"]) == (422, "catalog_invalid")
    place = f"models[{list(MODELS).index('lossy')}].bindings[0].supply"
    assert [error["pointer"] for error in refused.json["errors"]] == [place]
    assert await stack.api.get("/v1/operator/catalog") == before


async def test_the_publish_gate(stack: Stack) -> None:
    """CAT-3: a model that lacks a price stays unpublished, cannot be used and says why; the whole file opens it."""
    whole = stack.setting.catalog(stack.studio_url)
    unpriced = whole.replace("prices:\n  - three\n", "prices: []\n")
    assert unpriced != whole
    applied = await stack.api.call("POST", "/v1/operator/catalog:apply", text=unpriced)
    (standing,) = (item for item in applied["publications"] if item["model"] == "burst")
    assert (standing["published"], bool(standing["reasons"])) == (False, True)
    closed = await stack.api.ask("POST", "/v1/operator/models/burst:publish")
    assert (closed.status, closed.json["code"]) == (422, "catalog_not_publishable")
    assert "burst" not in [item["id"] for item in (await stack.api.get("/v1/models"))["data"]]
    body = {"model": "burst", "input": {"prompt": "too early", **FIXED}}
    assert (await stack.api.ask("POST", "/v1/runs", json=body)).json["code"] == "model_not_published"
    await stack.api.call("POST", "/v1/operator/catalog:apply", text=whole)
    run = await stack.api.finished(await stack.api.post_run("burst", "open again"))
    assert run["status"] == "succeeded"


async def test_an_operator_settles_an_uncertain_submission(stack: Stack) -> None:
    """ATT-6: while the provider's records cannot be read nothing is sent again; an operator's word settles it."""
    await stack.lab.script("lossy", {"drop_after_body": True})
    await stack.lab.script("lossy", {"status": 500}, repeat="forever", method="GET", path="/contents/generations/tasks")
    run_id = await stack.api.post_run("lossy", "only a person knows")

    async def uncertain() -> list[dict[str, Any]]:
        found = (await stack.api.get("/v1/operator/uncertain"))["attempts"]
        return [item for item in found if item["run_id"] == run_id]

    (attempt,) = await until(uncertain, lambda found: found and found[0]["reconcile_count"] > 0)
    assert attempt["state"] == "submission_uncertain"
    (job,) = await stack.lab.submissions("lossy")
    await stack.lab.call("DELETE", "/lab/script")
    word = {"resolution": "accepted", "provider_task_id": job["provider_task_id"]}
    await stack.api.call("POST", f"/v1/operator/attempts/{attempt['id']}/resolve", body=word)
    run = await stack.api.finished(run_id)
    assert (run["status"], run["usage"]["attempts"]) == ("succeeded", 1)
    assert await uncertain() == []


async def test_the_books_agree(stack: Stack) -> None:
    """VER-7: whatever operators did, every accepted job is one Attempt of ours and nothing was sent twice."""
    await books.agree(stack)
