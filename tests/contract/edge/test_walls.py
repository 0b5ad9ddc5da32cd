"""Walls between tenants, on every operation of the document: one that is new cannot be forgotten."""

from typing import Any

import httpx2

from pointsman.routing.v1 import routing_service_pb2
from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_problems import check

USERS = {"runs", "invoke"}
BODIES: dict[str, Any] = {"steerRun": {"kind": "style", "data": {"text": "darker"}}}
"""Bodies of operations about one thing that want one."""
PUBLIC = {"model_id": "a model is named to whom it is published", "code": "pages of errors are everybody's"}
"""Names in paths that are no tenant's own."""


async def about_one_thing(client: httpx2.AsyncClient) -> list[tuple[str, str, str]]:
    """(operation, method, path) of everything that a user's key may ask about an id."""
    paths = (await client.get("/openapi.json")).json()["paths"]
    return [
        (told["operationId"], method.upper(), path)
        for path, methods in paths.items()
        for method, told in methods.items()
        if "{" in path and USERS & set(told.get("x-scopes", ())) and not any(f"{{{name}}}" in path for name in PUBLIC)
    ]


async def test_foreign_ids_are_found_nowhere(edge: EdgeHouse) -> None:
    """AUTH-1: whatever operation takes an id, another tenant's is not found, in the words of one that never was."""
    edge.runs.add("r1", "owner")
    edge.routing.add("t1", "owner")
    edge.routing.ended(routing_service_pb2.InvokeRequest(call_id="c1", tenant="owner", model="m"))
    blob = await edge.blobs.put(b"theirs", "video/mp4")
    there = {"run_id": "r1", "task_id": "t1", "call_id": "c1", "sha256": blob.sha256}
    never = {"run_id": "r9", "task_id": "t9", "call_id": "c9", "sha256": "cd" * 32}
    async with await edge.user("owner", "runs", "invoke") as owner:
        operations = await about_one_thing(owner)
        assert len(operations) >= 9
        await owner.post("/v1/artifacts", content=b"theirs", headers={"content-type": "video/mp4"})
        for _, method, path in operations:
            if method == "GET" and not path.endswith(("/join", "/stream")):
                assert (await owner.get(path.format(**there))).status_code == 200, path
    async with await edge.user("stranger", "runs", "invoke") as stranger:
        for name, method, path in operations:
            body = {"json": BODIES[name]} if name in BODIES else {}
            foreign = check(await stranger.request(method, path.format(**there), **body), 404, "not_found")
            missing = check(await stranger.request(method, path.format(**never), **body), 404, "not_found")
            same = missing["detail"]
            for part, text in never.items():
                same = same.replace(text, there[part])
            assert foreign["detail"] == same, name
    assert edge.runs.runs["r1"].state == 1, "and nothing has happened to it"


async def test_operators_doors_tell_users_nothing(edge: EdgeHouse) -> None:
    """AUTH-1: what only operators may ask about an id is forbidden to a tenant alike, whether it is there or not."""
    edge.runs.add("r1", "owner")
    edge.routing.add("t1", "owner")
    async with await edge.user("owner", "runs", "invoke") as owner:
        paths = (await owner.get("/openapi.json")).json()["paths"]
        asked = [
            (method.upper(), path)
            for path, methods in paths.items()
            for method, told in methods.items()
            if "{" in path and told.get("x-scopes") and not USERS & set(told["x-scopes"])
        ]
        assert ("GET", "/v1/operator/runs/{run_id}") in asked
        for method, path in asked:
            for run_id, task_id in (("r1", "t1"), ("r9", "t9")):
                there = path.replace("{run_id}", run_id).replace("{task_id}", task_id)
                check(await owner.request(method, there), 403, "forbidden")


async def test_no_list_tells_of_another_tenant(edge: EdgeHouse) -> None:
    """AUTH-1: whatever operation lists, a stranger's answer names nothing of the owner's."""
    edge.runs.add("run-of-the-owner", "owner", labels={"act": "secret-of-the-owner"})
    edge.routing.add("task-of-the-owner", "owner")
    edge.routing.ended(routing_service_pb2.InvokeRequest(call_id="call-of-the-owner", tenant="owner", model="m"))
    async with await edge.user("stranger", "runs", "invoke") as stranger:
        paths = (await stranger.get("/openapi.json")).json()["paths"]
        for path, methods in paths.items():
            if "{" not in path and USERS & set(methods.get("get", {}).get("x-scopes", ())):
                answer = await stranger.get(path)
                assert answer.status_code == 200, path
                assert "of-the-owner" not in answer.text, path


async def test_a_scope_opens_what_it_says_and_no_more(edge: EdgeHouse) -> None:
    """AUTH-1: a key of each scope is let in by the operations that name it, and forbidden by all others."""
    async with edge.client() as nobody:
        paths = (await nobody.get("/openapi.json")).json()["paths"]
    for scope in ("runs", "invoke", "operate", "admin"):
        async with await edge.user("studio", scope) as client:
            for path, methods in paths.items():
                for method, told in methods.items():
                    if not told.get("x-scopes") or scope in told["x-scopes"]:
                        continue
                    answer = await client.request(method.upper(), path.replace("{", "").replace("}", ""))
                    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), (scope, method, path)
