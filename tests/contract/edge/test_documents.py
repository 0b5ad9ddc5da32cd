"""Probes, metrics, and the OpenAPI document held against what the server does."""

import base64
from typing import Any

import httpx2
import pytest

from libs.faults.fault import Fault
from pointsman.common.v1 import artifact_pb2
from pointsman.routing.v1 import alert_pb2, routing_service_pb2
from services.routing.domain.catalog import Kind
from services.routing.domain.input_shape import FIELDS, REQUIRED
from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_calls import HELLO as CHAT
from tests.contract.edge.test_problems import check
from tests.contract.edge.test_runs import ORDER
from tests.contract.edge.values import at
from tests.support.media import picture


async def test_probes(edge: EdgeHouse) -> None:
    """OPS-2: alive while the process answers; ready while every peer does, and if not, the silent one is named."""
    async with edge.client() as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).json() == {"status": "ready"}
        edge.health.fault = Fault.of("governance_backend_down")
        problem = check(await client.get("/readyz"), 503, "peer_unavailable")
        assert "health (governance_backend_down)" in problem["detail"]
        assert (await client.get("/healthz")).status_code == 200


async def test_a_process_that_stops_says_so_before_its_port_is_closed(edge: EdgeHouse) -> None:
    """OPS-4: told to stop, it is not ready and says why; it is alive, and what still comes is served."""
    edge.context.leave()
    async with edge.client() as client:
        problem = check(await client.get("/readyz"), 503, "peer_unavailable")
        assert "this process is stopping" in problem["detail"]
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/errors")).status_code == 200


async def test_metrics_count_by_route(edge: EdgeHouse) -> None:
    """EDG-1: requests are counted and timed by route, method and status; problems by code; ids are in no label."""
    edge.runs.add("r1")
    async with await edge.user() as user:
        await user.get("/v1/runs/r1")
        await user.get("/v1/runs/none")
        await user.request("BREW", "/nowhere")
        page = await user.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain")
    text = page.text
    assert 'pointsman_http_seconds_count{method="GET",route="/v1/runs/{run_id}",status="200"} 1.0' in text
    assert 'pointsman_http_seconds_count{method="GET",route="/v1/runs/{run_id}",status="404"} 1.0' in text
    assert 'pointsman_http_seconds_count{method="other",route="unmatched",status="404"} 1.0' in text
    assert 'pointsman_http_problems_total{code="not_found"} 2.0' in text
    assert "r1" not in text


async def test_documents_need_nothing_from_elsewhere(edge: EdgeHouse) -> None:
    """OAI-2: the page of the API stands by itself and lists every operation of the document."""
    async with edge.client() as client:
        document = (await client.get("/openapi.json")).json()
        page = (await client.get("/docs")).text
    assert document["openapi"].startswith("3.1")
    names = [found["operationId"] for methods in document["paths"].values() for found in methods.values()]
    assert len(names) == len(set(names))
    for path in document["paths"]:
        assert f"<code>{path}</code>" in page
    for outside in ("src=", "http://", "https://", "<script", "@import", "url("):
        assert outside not in page


async def test_the_address_of_the_server_leads_to_its_page(edge: EdgeHouse) -> None:
    """OPS-8: a browser at the root is sent to /docs."""
    async with edge.client() as client:
        found = await client.get("/", follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (307, "/docs")


async def test_inputs_are_told_as_routing_takes_them(edge: EdgeHouse) -> None:
    """SEL-2: the document names, for each kind of work, exactly the fields that are admitted."""
    async with edge.client() as client:
        document = (await client.get("/openapi.json")).json()
        page = (await client.get("/docs")).text
    schemas = document["components"]["schemas"]
    for kind in Kind:
        told = schemas[f"{kind.value.capitalize()}Input"]
        assert list(told["properties"]) == list(FIELDS[kind])
        assert told.get("required", []) == list(REQUIRED.get(kind, ()))
        assert f'href="#{kind.value.capitalize()}Input"' in page
    order = document["paths"]["/v1/runs"]["post"]["requestBody"]["content"]["application/json"]["schema"]["oneOf"][0]
    good = {"prompt": "a lake", "duration_s": 5, "first_frame": {"artifact": "0" * 64}}
    assert faults(order["properties"]["input"], good, document) == []
    assert faults(order["properties"]["input"], {**good, "promt": "x"}, document)


async def test_the_document_tells_of_what_is_served(edge: EdgeHouse) -> None:
    """EDG-3: every path and method of the document answers, and no other method does."""
    async with edge.client() as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
        for path, methods in paths.items():
            options = await client.options(path.replace("{", "").replace("}", ""))
            allowed = set(options.headers["allow"].lower().split(", ")) - {"options", "head"}
            assert allowed == set(methods), path


def faults(schema: Any, value: Any, document: Any, at: str = "$") -> list[str]:
    """Where a value is not what a schema says: the part of JSON Schema that the document uses."""
    if "$ref" in schema:
        return faults(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], value, document, at)
    if "anyOf" in schema:
        found = [faults(option, value, document, at) for option in schema["anyOf"]]
        return [] if [] in found else found[0]
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(kind, value) for kind in kinds):
        return [f"{at}: {value!r} is no {kinds}"]
    wrong = []
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        wrong += [f"{at}: {name} is missing" for name in schema.get("required", ()) if name not in value]
        wrong += [f"{at}: {name} is not told" for name in value if properties and name not in properties]
        for name, item in value.items():
            inner = properties.get(name) or schema.get("additionalProperties") or {}
            wrong += faults(inner if isinstance(inner, dict) else {}, item, document, f"{at}.{name}")
    if isinstance(value, list):
        for index, item in enumerate(value):
            wrong += faults(schema.get("items", {}), item, document, f"{at}[{index}]")
    return wrong


def _is(kind: str, value: Any) -> bool:
    kinds = {"string": str, "object": dict, "array": list, "boolean": bool, "null": type(None), "number": (int, float)}
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kinds[kind])


def expected(document: Any, method: str, path: str, answer: httpx2.Response) -> list[str]:
    """What is wrong with an answer, by the document."""
    told = document["paths"][path][method.lower()]["responses"].get(str(answer.status_code))
    if told is None:
        return [f"{method} {path}: status {answer.status_code} is not told"]
    if not answer.content:
        return []
    media = answer.headers["content-type"].partition(";")[0]
    content = told.get("content", {})
    named = media if media in content else f"{media.partition('/')[0]}/*"
    if named not in content:
        return [f"{method} {path}: {answer.status_code} {media} is not told"]
    schema = content[named]["schema"]
    return faults(schema, answer.json(), document) if media.endswith("json") else []


SHOWN = {"base64": base64.b64encode(picture()).decode(), "media_type": "image/png"}
GOOD = [
    ("POST", "/v1/runs", "/v1/runs", {"json": ORDER}),
    ("GET", "/v1/runs", "/v1/runs", {}),
    ("GET", "/v1/runs/{run_id}", "/v1/runs/r1", {}),
    ("GET", "/v1/runs/{run_id}/join", "/v1/runs/r1/join", {}),
    ("GET", "/v1/runs/{run_id}/events", "/v1/runs/r1/events", {}),
    ("GET", "/v1/runs/{run_id}/stream", "/v1/runs/r1/stream", {}),
    ("GET", "/v1/runs/{run_id}/callbacks", "/v1/runs/r1/callbacks", {}),
    ("POST", "/v1/runs/{run_id}/cancel", "/v1/runs/r2/cancel", {}),
    ("GET", "/v1/tasks/{task_id}", "/v1/tasks/t1", {}),
    ("GET", "/v1/tasks/{task_id}/selections", "/v1/tasks/t1/selections", {}),
    ("GET", "/v1/models", "/v1/models", {}),
    ("GET", "/v1/models/{model_id}", "/v1/models/clip", {}),
    ("POST", "/v1/chat/completions", "/v1/chat/completions", {"json": CHAT}),
    ("POST", "/v1/chat/completions", "/v1/chat/completions", {"json": {**CHAT, "stream": True}}),
    ("POST", "/v1/embeddings", "/v1/embeddings", {"json": {"model": "m", "input": ["a", "b"]}}),
    ("POST", "/v1/images/generations", "/v1/images/generations", {"json": {"model": "m", "prompt": "a"}}),
    ("POST", "/v1/audio/speech", "/v1/audio/speech", {"json": {"model": "m", "input": "a"}}),
    ("POST", "/v1/invoke", "/v1/invoke", {"json": {"model": "m", "input": {"messages": []}}}),
    ("POST", "/v1/ocr", "/v1/ocr", {"json": {"model": "m", "image": SHOWN}}),
    ("GET", "/v1/calls/{call_id}", "/v1/calls/c1", {}),
    ("POST", "/v1/artifacts", "/v1/artifacts", {"content": b"x"}),
    ("GET", "/v1/operator/health", "/v1/operator/health", {}),
    ("GET", "/v1/operator/capacity", "/v1/operator/capacity", {}),
    ("GET", "/v1/operator/alerts", "/v1/operator/alerts", {}),
    ("GET", "/v1/operator/uncertain", "/v1/operator/uncertain", {}),
    ("GET", "/v1/operator/catalog", "/v1/operator/catalog", {}),
    ("POST", "/v1/operator/catalog:apply", "/v1/operator/catalog:apply", {"content": b"version: 1"}),
    ("POST", "/v1/operator/catalog:diff", "/v1/operator/catalog:diff", {"content": b"version: 1"}),
    ("POST", "/v1/operator/models/{model_id}:publish", "/v1/operator/models/clip:publish", {}),
    ("POST", "/v1/operator/supplies/{id}:disable", "/v1/operator/supplies/a%2Fb:disable", {}),
    ("POST", "/v1/operator/channels/{id}:open-circuit", "/v1/operator/channels/a:open-circuit", {}),
    ("POST", "/v1/operator/attempts/{attempt_id}/resolve", "/v1/operator/attempts/a2/resolve",
     {"json": {"resolution": "not_accepted"}}),
    ("POST", "/v1/operator/keys", "/v1/operator/keys", {"json": {"tenant": "a", "scopes": ["runs"]}}),
    ("GET", "/v1/operator/keys", "/v1/operator/keys", {}),
    ("POST", "/v1/operator/webhook-secrets", "/v1/operator/webhook-secrets", {"json": {"tenant": "a"}}),
    ("GET", "/healthz", "/healthz", {}),
    ("GET", "/readyz", "/readyz", {}),
    ("GET", "/metrics", "/metrics", {}),
    ("GET", "/errors", "/errors", {}),
    ("GET", "/errors/{code}", "/errors/internal", {}),
]  # fmt: skip
BAD = [
    ("POST", "/v1/runs", "/v1/runs", {"json": {}}),
    ("POST", "/v1/runs", "/v1/runs", {"content": b"{"}),
    ("POST", "/v1/runs", "/v1/runs", {"data": {"a": "b"}}),
    ("GET", "/v1/runs", "/v1/runs", {"params": {"page_size": "x"}}),
    ("GET", "/v1/runs/{run_id}", "/v1/runs/none", {}),
    ("GET", "/v1/runs/{run_id}/join", "/v1/runs/r2/join", {}),
    ("GET", "/v1/runs/{run_id}/stream", "/v1/runs/r1/stream?after=x", {}),
    ("POST", "/v1/runs/{run_id}/cancel", "/v1/runs/r1/cancel", {}),
    ("GET", "/v1/artifacts/{sha256}", "/v1/artifacts/none", {}),
    ("POST", "/v1/chat/completions", "/v1/chat/completions", {"json": {}}),
    ("POST", "/v1/images/generations", "/v1/images/generations", {"json": {}}),
    ("POST", "/v1/invoke", "/v1/invoke", {"content": b"{"}),
    ("GET", "/v1/calls/{call_id}", "/v1/calls/none", {}),
    ("GET", "/v1/models/{model_id}", "/v1/models/none", {}),
    ("POST", "/v1/operator/keys", "/v1/operator/keys", {"json": {}}),
    ("DELETE", "/v1/operator/keys/{key_id}", "/v1/operator/keys/none", {}),
]  # fmt: skip


async def test_every_body_may_be_too_large_or_of_another_type(edge: EdgeHouse) -> None:
    """EDG-2, EDG-3: whatever reads a body refuses one of another type with 415, and the document tells both that and
    413."""
    async with edge.admin as admin:
        paths = (await admin.get("/openapi.json")).json()["paths"]
        posts = {path: methods["post"] for path, methods in paths.items() if "post" in methods}
        taking = {
            path: told
            for path, told in posts.items()
            if "application/json" in told.get("requestBody", {}).get("content", {})
        }
        assert len(taking) > 30
        for path, told in taking.items():
            assert {"413", "415"} <= told["responses"].keys(), path
            answer = await admin.post(path, content=b"x", headers={"Content-Type": "image/png"})
            check(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize("method, path, url, given", [*GOOD, *BAD])
async def test_answers_are_what_the_document_says(
    edge: EdgeHouse, method: str, path: str, url: str, given: dict[str, Any]
) -> None:
    """EDG-1: every answer, good or bad, has a status, a media type and a shape that the document tells."""
    edge.runs.add("r1", "default", labels={"act": "1"})
    edge.runs.succeed("r1", "ab" * 32)
    edge.runs.add("r2", "default")
    edge.callbacks.add("r1", "PENDING", next_time=at())
    edge.routing.add("t1", "default")
    edge.routing.ended(routing_service_pb2.InvokeRequest(call_id="c1", tenant="default", model="m"))
    blob = await edge.blobs.put(b"wav", "audio/wav")
    edge.routing.artifacts = [artifact_pb2.Artifact(sha256=blob.sha256, media_type="audio/wav", size_bytes=3)]
    edge.routing.alerts.append(alert_pb2.Alert(id="x", kind="k", severity="low", subject="s", create_time=at()))
    await edge.key()
    async with edge.admin as admin:
        document = (await admin.get("/openapi.json")).json()
        answer = await admin.request(method, url, **given)
    good = (method, path, url, given) in GOOD
    assert answer.is_success == good, answer.text
    assert expected(document, method, path, answer) == []
