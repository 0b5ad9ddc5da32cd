"""The public gRPC port asks for keys, as HTTP does."""

import base64
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.rpc.faulting import faults_from_rpc
from pointsman.common.v1 import artifact_pb2
from pointsman.edge.v1 import admission_service_pb2, key_service_pb2
from pointsman.edge.v1.admission_service_pb2_grpc import AdmissionServiceStub
from pointsman.edge.v1.key_service_pb2_grpc import KeyServiceStub
from pointsman.health.v1 import health_service_pb2
from pointsman.health.v1.health_service_pb2_grpc import HealthServiceStub
from pointsman.routing.v1 import call_list_pb2, routing_service_pb2, task_pb2
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from pointsman.runs.v1 import review_pb2, review_service_pb2, runs_service_pb2
from pointsman.runs.v1.review_service_pb2_grpc import ReviewServiceStub
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceStub
from tests.contract.edge.house import ADMIN_KEY, EdgeHouse
from tests.contract.edge.port import Port
from tests.contract.edge.values import struct
from tests.support.media import picture

SNAPSHOT = health_service_pb2.GetSnapshotRequest()


async def test_strangers_show_a_key(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: over TCP a call without a valid key is unauthenticated; a forged caller's name opens nothing."""
    assert await port.code(HealthServiceStub, "GetSnapshot", SNAPSHOT) == "unauthenticated"
    assert await port.code(HealthServiceStub, "GetSnapshot", SNAPSHOT, "wrong") == "unauthenticated"
    forged = HealthServiceStub(port.outside.for_caller("routing").to("port"))
    with pytest.raises(Fault) as caught:
        async with faults_from_rpc():
            await forged.GetSnapshot(SNAPSHOT, timeout=5)
    assert caught.value.code == "unauthenticated"
    assert await port.code(HealthServiceStub, "GetSnapshot", SNAPSHOT, ADMIN_KEY) == ""


async def test_operators_methods_need_their_scope(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: a user's key reaches no operator's method, an operator's makes no keys."""
    _, user = await edge.key("studio", "runs", "invoke")
    _, operator = await edge.key("studio", "operate")
    assert await port.code(HealthServiceStub, "GetSnapshot", SNAPSHOT, user) == "forbidden"
    assert await port.code(HealthServiceStub, "GetSnapshot", SNAPSHOT, operator) == ""
    listing = key_service_pb2.ListKeysRequest()
    assert await port.code(KeyServiceStub, "ListKeys", listing, operator) == "forbidden"
    assert await port.code(KeyServiceStub, "ListKeys", listing, ADMIN_KEY) == ""


async def test_users_name_their_own_tenant(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: a user's call is for its own tenant, whatever it writes into the request; operators may name any."""
    edge.runs.add("r1", "owner")
    edge.routing.add("t1", "owner")
    _, owner = await edge.key("owner")
    _, stranger = await edge.key("stranger")
    run = runs_service_pb2.GetRunRequest(run_id="r1", tenant="owner")
    assert (await port.ask(RunsServiceStub, "GetRun", run, owner)).run.id == "r1"
    assert await port.code(RunsServiceStub, "GetRun", run, stranger) == "forbidden"
    anybody = routing_service_pb2.GetTaskRequest(task_id="t1")
    assert await port.code(RoutingServiceStub, "GetTask", anybody, owner) == "forbidden"
    assert await port.code(RoutingServiceStub, "GetTask", anybody, ADMIN_KEY) == ""
    _, operator = await edge.key("ops", "operate")
    for method, whoever in (
        ("GetRun", runs_service_pb2.GetRunRequest(run_id="r1")),
        ("ListRuns", runs_service_pb2.ListRunsRequest(page_size=9)),
    ):
        assert await port.code(RunsServiceStub, method, whoever, owner) == "forbidden"
        assert await port.code(RunsServiceStub, method, whoever, operator) == ""
    calls = call_list_pb2.ListCallsRequest(page_size=9)
    _, caller = await edge.key("owner", "invoke")
    assert await port.code(RoutingServiceStub, "ListCalls", calls, caller) == "forbidden"
    assert await port.code(RoutingServiceStub, "ListCalls", calls, operator) == ""
    calls.tenant = "owner"
    assert await port.code(RoutingServiceStub, "ListCalls", calls, caller) == ""


async def test_streams_are_checked_too(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: a stream of another tenant's events does not begin."""
    edge.runs.add("r1", "owner")
    _, stranger = await edge.key("stranger")
    request = runs_service_pb2.StreamRunEventsRequest(run_id="r1", tenant="owner", page_size=1)
    stub = RunsServiceStub(port.outside.to("port"))

    async def read() -> list[Any]:
        async with faults_from_rpc():
            call = stub.StreamRunEvents(request, timeout=5, metadata=[("authorization", f"Bearer {stranger}")])
            return [reply async for reply in call]

    with pytest.raises(Fault) as caught:
        await read()
    assert caught.value.code == "forbidden"


async def test_calls_need_their_scope_over_grpc_too(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: scope `invoke` calls for its own tenant, streamed or not; a key for runs does not."""
    _, caller = await edge.key("owner", "invoke")
    _, runner = await edge.key("owner", "runs")
    own = routing_service_pb2.InvokeRequest(call_id="c1", tenant="owner", model="m", input=b"{}")
    foreign = routing_service_pb2.InvokeRequest(call_id="c2", tenant="other", model="m", input=b"{}")
    assert await port.code(RoutingServiceStub, "Invoke", own, caller) == ""
    assert await port.code(RoutingServiceStub, "Invoke", own, runner) == "forbidden"
    assert await port.code(RoutingServiceStub, "Invoke", foreign, caller) == "forbidden"
    reading = routing_service_pb2.GetCallRequest(call_id="c1")
    assert await port.code(RoutingServiceStub, "GetCall", reading, caller) == "forbidden"
    assert await stream_code(port, own, caller) == ""
    assert await stream_code(port, foreign, caller) == "forbidden"


async def stream_code(port: Port, request: routing_service_pb2.InvokeRequest, key: str) -> str:
    """The code of the fault that a streamed call ends with, "" for none."""
    stub = RoutingServiceStub(port.outside.to("port"))
    streamed = routing_service_pb2.InvokeStreamRequest(request=request)
    try:
        async with faults_from_rpc():
            async for _ in stub.InvokeStream(streamed, timeout=5, metadata=[("authorization", f"Bearer {key}")]):
                continue
    except Fault as fault:
        return fault.code
    return ""


async def test_our_own_contexts_need_no_key(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: a call of this process is our own."""
    reply = await HealthServiceStub(port.inside.to("health")).GetSnapshot(SNAPSHOT, timeout=5)
    assert len(reply.subjects) == 2


async def test_a_users_key_is_told_to_nobody(edge: EdgeHouse, port: Port) -> None:
    """ERR-4: the servicer acts for the key's tenant, and no context is named by a stranger."""
    edge.runs.add("r1", "owner")
    _, owner = await edge.key("owner")
    await port.ask(RunsServiceStub, "GetRun", runs_service_pb2.GetRunRequest(run_id="r1", tenant="owner"), owner)
    identity = edge.runs.identities[-1]
    assert (identity.caller, identity.tenant, identity.authorization) == ("", "owner", None)


def places(fault: Fault) -> list[tuple[str, str]]:
    """(pointer, reason) of each field that is wrong."""
    return [(error.pointer, error.reason) for error in fault.errors]


async def uploaded(edge: EdgeHouse, key: str, content: bytes) -> str:
    """The digest of a file that the key's tenant brought over HTTP."""
    async with edge.client(key) as client:
        answer = await client.post("/v1/artifacts", content=content, headers={"content-type": "image/png"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["sha256"])


def ordered(**given: Any) -> runs_service_pb2.CreateRunRequest:
    """An order of tenant `owner` for one clip."""
    return runs_service_pb2.CreateRunRequest(
        tenant="owner", model="clip", input=struct(**{"prompt": "a lake", **given})
    )


def produced(**given: Any) -> runs_service_pb2.CreateRunRequest:
    """An order of tenant `owner` for a production with one node."""
    node = {"id": "shot", "kind": "generate", "model": "clip", "input": given}
    return runs_service_pb2.CreateRunRequest(tenant="owner", production=struct(production="p", nodes=[node]))


def redriven(**given: Any) -> runs_service_pb2.RedriveRunRequest:
    """A redrive of the first Run, with another input."""
    return runs_service_pb2.RedriveRunRequest(run_id="r1", tenant="owner", node_id="main", input=struct(**given))


def steered(**given: Any) -> runs_service_pb2.SteerRunRequest:
    """An input into the first Run."""
    return runs_service_pb2.SteerRunRequest(run_id="r1", tenant="owner", kind="look", data=struct(value=given))


def called(**given: Any) -> routing_service_pb2.InvokeRequest:
    """A call."""
    return routing_service_pb2.InvokeRequest(call_id="c1", tenant="owner", model="m", input=json.dumps(given).encode())


BRINGING: list[tuple[Any, str, Callable[..., Any], str]] = [
    (RunsServiceStub, "CreateRun", ordered, "/input"),
    (RunsServiceStub, "CreateRun", produced, "/production/nodes/0/input"),
    (RunsServiceStub, "RedriveRun", redriven, "/input"),
    (RunsServiceStub, "SteerRun", steered, "/data/value"),
    (RoutingServiceStub, "Invoke", called, "/input"),
]


@pytest.mark.parametrize("stub, method, bringing, root", BRINGING)
async def test_nobody_brings_the_file_of_another(
    edge: EdgeHouse, port: Port, stub: Any, method: str, bringing: Callable[..., Any], root: str
) -> None:
    """AUTH-1: over gRPC too another's file does not exist, in the words of one that never did; one's own is taken."""
    _, key = await edge.key("owner", "runs", "invoke")
    edge.runs.add("r1", "owner")
    _, other = await edge.key("stranger")
    theirs = await uploaded(edge, other, picture(colour=1))
    for digest in (theirs, "0" * 64):
        fault = await port.fault(stub, method, bringing(reference_images=[{"artifact": digest}]), key)
        assert fault.code == "validation_failed"
        assert places(fault) == [(f"{root}/reference_images/0/artifact", "no such artifact")]
    assert (edge.runs.created, edge.runs.commanded, edge.routing.asked) == ([], [], [])
    own = await uploaded(edge, key, picture(colour=2))
    await port.ask(stub, method, bringing(reference_images=[{"artifact": own}]), key)


async def test_streamed_calls_bring_no_file_of_another(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: a call that is streamed is judged as one that is not, before anything of it begins."""
    _, key = await edge.key("owner", "invoke")
    assert await stream_code(port, called(image={"artifact": "0" * 64}), key) == "validation_failed"
    assert edge.routing.asked == []
    own = await uploaded(edge, key, picture())
    assert await stream_code(port, called(image={"artifact": own}), key) == ""


@pytest.mark.parametrize("stub, method, bringing, root", BRINGING)
async def test_no_address_inside_is_fetched(
    edge: EdgeHouse, port: Port, stub: Any, method: str, bringing: Callable[..., Any], root: str
) -> None:
    """AUTH-4: a URL that leads inside is refused over gRPC as over HTTP, for operators too."""
    _, key = await edge.key("owner", "runs", "invoke")
    edge.runs.add("r1", "owner")
    for text in (key, ADMIN_KEY):
        fault = await port.fault(stub, method, bringing(first_frame={"url": "http://127.0.0.1/a.png"}), text)
        assert (fault.code, [error.pointer for error in fault.errors]) == (
            "url_not_allowed",
            [f"{root}/first_frame/url"],
        )
    assert (edge.runs.created, edge.runs.commanded, edge.routing.asked) == ([], [], [])


def decided(**given: Any) -> review_service_pb2.DecideRequest:
    """A decision that changes an input."""
    decision = review_pb2.DECISION_CHANGE_INPUT
    return review_service_pb2.DecideRequest(review_id="q1", decision=decision, decider="ann", input=struct(**given))


def submitted(**given: Any) -> routing_service_pb2.SubmitTaskRequest:
    """A Task of its own."""
    return routing_service_pb2.SubmitTaskRequest(request_id="t9", tenant="owner", model="clip", input=struct(**given))


OPERATED = [(ReviewServiceStub, "Decide", decided), (RoutingServiceStub, "SubmitTask", submitted)]


@pytest.mark.parametrize("stub, method, bringing", OPERATED)
async def test_what_operators_bring_is_judged_as_well(
    edge: EdgeHouse, port: Port, stub: Any, method: str, bringing: Callable[..., Any]
) -> None:
    """AUTH-4: a person's new input and a Task lead nowhere inside; content is kept, every file may be brought."""
    _, key = await edge.key("ops", "operate")
    fault = await port.fault(stub, method, bringing(first_frame={"url": "http://127.0.0.1/a.png"}), key)
    assert (fault.code, [error.pointer for error in fault.errors]) == ("url_not_allowed", ["/input/first_frame/url"])
    assert places(await port.fault(stub, method, bringing(first_frame={"artifact": "0" * 64}), key)) == [
        ("/input/first_frame/artifact", "no such artifact")
    ]
    assert (edge.reviews.decided, edge.routing.submitted) == ([], [])
    theirs = await uploaded(edge, (await edge.key("owner"))[1], picture(colour=3))
    inline = {"base64": base64.b64encode(picture()).decode(), "media_type": "image/png"}
    await port.ask(stub, method, bringing(first_frame=inline, last_frame={"artifact": theirs}, node="shot"), key)
    (asked,) = *edge.reviews.decided, *edge.routing.submitted
    assert asked.input["first_frame"]["artifact"] == hashlib.sha256(picture()).hexdigest()
    assert (asked.input["last_frame"]["artifact"], asked.input["node"]) == (theirs, "shot")
    _, user = await edge.key("owner", "runs", "invoke")
    assert await port.code(stub, method, bringing(), user) == "forbidden"


async def test_no_callback_leads_inside(edge: EdgeHouse, port: Port) -> None:
    """AUTH-4: nor does a callback of an order that comes over gRPC."""
    _, key = await edge.key("owner")
    order = ordered()
    order.callback_url = "http://127.0.0.1/hook"
    fault = await port.fault(RunsServiceStub, "CreateRun", order, key)
    assert (fault.code, [error.pointer for error in fault.errors]) == ("url_not_allowed", ["/callback_url"])
    assert edge.runs.created == []


async def test_content_becomes_an_artifact(edge: EdgeHouse, port: Port) -> None:
    """AUTH-4: what comes as base64 is kept and named by its digest, in orders of every form; all else stays."""
    _, key = await edge.key("owner", "runs", "invoke")
    edge.runs.add("r1", "owner")
    content, sha256 = picture(), hashlib.sha256(picture()).hexdigest()
    inline = {"base64": base64.b64encode(content).decode(), "media_type": "image/png"}
    for stub, method, bringing, _ in BRINGING:
        await port.ask(stub, method, bringing(first_frame=inline, prompt="dusk", seed=7), key)
    made, produced_, (redrive, steer), (call,) = *edge.runs.created, edge.runs.commanded, edge.routing.asked
    given = [made.input, produced_.production["nodes"][0]["input"], redrive.input, steer.data["value"]]
    for each in given:
        assert (each["first_frame"]["artifact"], each["prompt"], each["seed"]) == (sha256, "dusk", 7)
    assert json.loads(call.input) == {"first_frame": {"artifact": sha256}, "prompt": "dusk", "seed": 7}


async def test_a_known_key_is_not_judged_again(edge: EdgeHouse, port: Port, tmp_path: Path) -> None:
    """IDEM-1: the repeat of an order is bound to what its caller said, and told before its materials are looked at."""
    _, key = await edge.key("owner")
    own = await uploaded(edge, key, picture())
    first, other = ordered(first_frame={"artifact": own}), ordered(first_frame={"artifact": "0" * 64})
    first.idempotency_key = other.idempotency_key = "k"
    await port.ask(RunsServiceStub, "CreateRun", first, key)
    shutil.rmtree(tmp_path / "blobs")
    first.options.deadline_time.FromSeconds(2_000_000_000)
    await port.ask(RunsServiceStub, "CreateRun", first, key)
    assert edge.runs.created[0].fingerprint == edge.runs.created[1].fingerprint != ""
    assert (await port.fault(RunsServiceStub, "CreateRun", other, key)).code == "idempotency_conflict"


@pytest.mark.parametrize("given", [b"", b"[]", b"{", b"\xff", b"[" * 5000])
async def test_an_input_that_is_none_is_told(edge: EdgeHouse, port: Port, given: bytes) -> None:
    """EDG-3: bytes that are no JSON object are refused before anybody else reads them in another way."""
    _, key = await edge.key("owner", "invoke")
    request = called()
    request.input = given
    assert await port.code(RoutingServiceStub, "Invoke", request, key) == "malformed_request"
    assert edge.routing.asked == []


async def test_a_request_to_be_judged_says_something(edge: EdgeHouse, port: Port) -> None:
    """EDG-3: nothing to judge is told by its field, and judging for others is for admins alone."""
    _, operator = await edge.key("owner", "operate")
    nothing = admission_service_pb2.JudgeRequest()
    assert await port.code(AdmissionServiceStub, "Judge", nothing, operator) == "forbidden"
    assert places(await port.fault(AdmissionServiceStub, "Judge", nothing, ADMIN_KEY)) == [("/request", "is required")]


async def test_what_one_is_shown_is_ones_own(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: what a Run or a call of a tenant made may be read and brought once an answer over gRPC has shown it; what
    callers wrote themselves proves nothing."""
    _, key = await edge.key("owner", "runs", "invoke")
    _, other = await edge.key("stranger", "runs")
    made, drawn = [(await edge.blobs.put(picture(colour=n), "image/png")).sha256 for n in (1, 2)]
    edge.runs.add("r1", "owner", labels={"sha256": drawn})
    edge.runs.succeed("r1", made)
    order = ordered(reference_images=[{"artifact": made}])
    assert await port.code(RunsServiceStub, "CreateRun", order, key) == "validation_failed"
    await port.ask(RunsServiceStub, "GetRun", runs_service_pb2.GetRunRequest(run_id="r1", tenant="owner"), key)
    await port.ask(RunsServiceStub, "CreateRun", order, key)
    assert (await edge.client(key).get(f"/v1/artifacts/{made}")).status_code == 200
    assert (await edge.client(key).get(f"/v1/artifacts/{drawn}")).status_code == 404
    assert (await edge.client(other).get(f"/v1/artifacts/{made}")).status_code == 404
    edge.routing.artifacts = [artifact_pb2.Artifact(sha256=drawn, media_type="image/png")]
    assert await stream_code(port, called(), key) == ""
    assert (await edge.client(key).get(f"/v1/artifacts/{drawn}")).status_code == 200


async def test_options_that_a_run_sets_by_itself_are_refused_by_name(edge: EdgeHouse, port: Port) -> None:
    """EDG-3, ERR-2: what nobody would read of an order is told, all of it, and nothing is made."""
    _, user = await edge.key("owner", "runs")
    order = ordered()
    said = {"supply_id": "zz", "max_attempts": -1, "hold_id": "h", "stage": -1, "blocks_release": True}
    order.options.MergeFrom(task_pb2.TaskOptions(**said))
    fault = await port.fault(RunsServiceStub, "CreateRun", order, user)
    assert [error.pointer for error in fault.errors] == [f"/options/{name}" for name in said]
