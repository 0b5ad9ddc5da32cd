"""The doors, in both layouts: problems, streams, documents, and what keeps tenants apart."""

import asyncio
from typing import Any

import pytest

from tests.support import books
from tests.support.stack import Stack
from tests.support.visitor import FIXED, Answer, gap_free, until

RUN = {"model": "steady", "input": {"prompt": "a lake", **FIXED}}
MEMBERS = {"type", "title", "status", "detail", "code", "request_id", "retryable", "category", "scope"}
REVOKED_WITHIN_S = 5.0
NOT_FOUND = (404, "not_found")


def sent(**given: Any) -> dict[str, Any]:
    """A request to POST /v1/runs with that body."""
    return {"method": "POST", "path": "/v1/runs", **given}


def with_input(**changes: Any) -> dict[str, Any]:
    """The same with a wrong input."""
    return sent(json={**RUN, "input": {**RUN["input"], **changes}})


BAD = {
    "json": (sent(data=b'{"model":'), 400, "malformed_request", None),
    "utf-8": (sent(data=b'{"model":"\xff"}', headers={"content-type": "application/json"}), 400, None, None),
    "nul": (with_input(prompt="a\0b"), 422, "validation_failed", "/input/prompt"),
    "no-model": (sent(json={"input": {}}), 422, "validation_failed", "/model"),
    "unknown-field": (sent(json=RUN | {"colour": "red"}), 422, "validation_failed", "/colour"),
    "unknown-model": (sent(json=RUN | {"model": "nobody"}), 404, None, None),
    "too-long": (with_input(duration_s=99), 422, "validation_failed", "/input/duration_s"),
    "no-material": (
        with_input(first_frame={"artifact": "0" * 64}),
        422,
        "validation_failed",
        "/input/first_frame/artifact",
    ),
    "media-type": (sent(data=b"x", headers={"content-type": "text/csv"}), 415, "unsupported_media_type", None),
    "method": ({"method": "DELETE", "path": "/v1/runs"}, 405, "method_not_allowed", None),
    "path": ({"method": "GET", "path": "/v1/nothing"}, *NOT_FOUND, None),
    "run": ({"method": "GET", "path": "/v1/runs/01J00000000000000000000000"}, *NOT_FOUND, None),
    "cursor": ({"method": "GET", "path": "/v1/runs?page_token=%FF"}, 400, "malformed_request", None),
    "size": ({"method": "GET", "path": "/v1/runs?page_size=0"}, 422, "validation_failed", "/query/page_size"),
    "status": ({"method": "GET", "path": "/v1/runs?status=lost"}, 422, "validation_failed", "/query/status"),
}


def is_problem(answer: Answer, status: int, code: str | None) -> dict[str, Any]:
    """EDG-1 for one answer; its body."""
    body: dict[str, Any] = answer.json
    assert (answer.status, body["status"]) == (status, status), body
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert body.keys() >= MEMBERS
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["code"] == (code or body["code"])
    return body


@pytest.mark.parametrize("asked, status, code, pointer", BAD.values(), ids=BAD.keys())
async def test_bad_requests(stack: Stack, asked: dict[str, Any], status: int, code: str | None, pointer: str) -> None:
    """EDG-1, EDG-2, EDG-3: every refusal is a problem with its code, and names the place."""
    if "data" in asked:
        asked = {"headers": {"content-type": "application/json"}} | asked
    problem = is_problem(await stack.api.ask(**asked), status, code)
    if pointer:
        assert pointer in [error["pointer"] for error in problem["errors"]]


async def test_keys_that_open_nothing(stack: Stack) -> None:
    """AUTH-1: no key, a wrong key, and a key without the scope."""
    for key in ("", "pm_nobody"):
        async with stack.as_holder(key) as stranger:
            answer = await stranger.ask("GET", "/v1/runs")
            is_problem(answer, 401, "unauthenticated")
            assert answer.headers["www-authenticate"].startswith("Bearer")
            for path in ("/healthz", "/readyz", "/metrics"):
                assert (await stranger.ask("GET", path)).status == 200
    made = await stack.api.call("POST", "/v1/operator/keys", body={"tenant": "reader", "scopes": ["invoke"]})
    async with stack.as_holder(made["key"]) as reader:
        for method, path in (("GET", "/v1/operator/health"), ("POST", "/v1/operator/keys"), ("GET", "/v1/runs")):
            is_problem(await reader.ask(method, path, json={}), 403, "forbidden")
        assert (await reader.ask("GET", "/v1/models")).status == 200


async def test_a_join_that_is_too_short(stack: Stack) -> None:
    """EDG-2: a Run that is not at rest in time is a 504 `join_timeout`, which may be asked again."""
    await stack.lab.account("single", running=0)
    run_id = await stack.api.post_run("single", "held")
    problem = is_problem(await stack.api.ask("GET", f"/v1/runs/{run_id}/join?timeout_s=1"), 504, "join_timeout")
    assert problem["retryable"] is True
    await stack.lab.account("single", running=1)
    assert (await stack.api.get(f"/v1/runs/{run_id}/join", timeout_s=30))["status"] == "succeeded"


async def test_a_stream_resumes_where_it_was_left(stack: Stack) -> None:
    """SSE-1, SSE-2, SSE-3, SSE-5, EVENT-2: live to the end, resumed without a gap, 204 when there is nothing newer."""
    run_id = await stack.api.post_run("steady", "a market in the rain")
    path = f"/v1/runs/{run_id}/stream"
    frames = await stack.api.frames(path)  # opened while it runs, closed by the server at the end
    events = await stack.api.events_of(run_id)
    gap_free(events)
    assert [(int(frame["id"]), frame["event"]) for frame in frames] == [(e["sequence"], e["kind"]) for e in events]
    later = await stack.api.frames(path, **{"Last-Event-ID": "3"})
    assert [int(frame["id"]) for frame in later] == [event["sequence"] for event in events[3:]]
    assert await stack.api.frames(f"{path}?after=3") == later
    assert (await stack.api.get(f"/v1/runs/{run_id}/events", after=3))["events"] == events[3:]
    done = await stack.api.ask("GET", path, headers={"Last-Event-ID": str(len(events))})
    assert (done.status, done.body) == (204, b"")
    for wrong in (str(len(events) + 1), "x", "-1"):
        is_problem(await stack.api.ask("GET", path, headers={"Last-Event-ID": wrong}), 400, "malformed_request")


async def test_documents(stack: Stack) -> None:
    """EDG-3, OAI-2: the OpenAPI document covers the contract; models are listed with what they may lose."""
    document = (await stack.api.ask("GET", "/openapi.json")).json
    assert document["openapi"].startswith("3.")
    paths = ("/v1/runs", "/v1/runs/{run_id}/stream", "/v1/tasks/{task_id}/selections", "/v1/artifacts/{sha256}")
    assert set(paths) <= document["paths"].keys()
    assert (await stack.api.ask("GET", "/docs")).headers["content-type"].startswith("text/html")
    models = {item["id"]: item for item in (await stack.api.get("/v1/models"))["data"]}
    assert models["whole"]["profile"] == "933"
    (loss,) = models["whole"]["degradations"]
    assert (loss["to_profile"], loss["drops"]) == ("900", ["reference_videos", "reference_audios"])
    assert loss["discloses"]


async def test_tenants_do_not_see_each_other(stack: Stack) -> None:
    """AUTH-1: a foreign Run, Task, selection, artifact, event or stream is not found, nor cancelled, nor used."""
    run_id = await stack.api.post_run("steady", "a secret lake")
    run = await stack.api.finished(run_id)
    task_id, digest = run["nodes"][0]["task_id"], run["result"]["artifacts"][0]["sha256"]
    made = await stack.api.call("POST", "/v1/operator/keys", body={"tenant": "rival", "scopes": ["runs", "invoke"]})
    stack.keys.append(made["key"])
    async with stack.as_holder(made["key"]) as rival:
        reads = [f"/v1/runs/{run_id}{view}" for view in ("", "/join?timeout_s=1", "/events", "/stream")]
        reads += [f"/v1/tasks/{task_id}", f"/v1/tasks/{task_id}/selections", f"/v1/artifacts/{digest}"]
        for path in reads:
            assert (await stack.api.ask("GET", path)).status == 200, path
            is_problem(await rival.ask("GET", path), *NOT_FOUND)
        is_problem(await rival.ask("POST", f"/v1/runs/{run_id}/cancel"), *NOT_FOUND)
        used = await rival.ask(
            "POST", "/v1/runs", json={**RUN, "input": {**RUN["input"], "first_frame": {"artifact": digest}}}
        )
        is_problem(used, 422, "validation_failed")
        assert await books.every_run(rival) == []
        own = await rival.finished(await rival.post_run("steady", "a lake of their own"))
        assert own["status"] == "succeeded"
        is_problem(await stack.api.ask("GET", f"/v1/runs/{own['id']}"), *NOT_FOUND)


async def test_one_key_of_idempotency_for_each_tenant(stack: Stack) -> None:
    """AUTH-1, IDEM-1: the same key and body is the same Run; for another tenant it is another one."""
    made = await stack.api.call("POST", "/v1/operator/keys", body={"tenant": "second", "scopes": ["runs"]})
    stack.keys.append(made["key"])
    headers = {"Idempotency-Key": "the-same-key"}
    first = await stack.api.ask("POST", "/v1/runs", json=RUN, headers=headers)
    again = await stack.api.ask("POST", "/v1/runs", json=RUN, headers=headers)
    assert (again.status, again.json["id"]) == (202, first.json["id"])
    assert again.headers["idempotency-replayed"] == "true"
    is_problem(
        await stack.api.ask("POST", "/v1/runs", json=RUN | {"model": "x"}, headers=headers), 422, "idempotency_conflict"
    )
    async with stack.as_holder(made["key"]) as second:
        other = await second.ask("POST", "/v1/runs", json=RUN, headers=headers)
        assert other.status == 202
        assert other.json["id"] != first.json["id"]


async def test_a_revoked_key_is_dead_within_seconds(stack: Stack) -> None:
    """AUTH-1: revoked means refused everywhere within 5 s, an open stream included."""
    await stack.lab.account("lossy", running=0)
    run_id = await stack.api.post_run("lossy", "held while a key dies")
    body = {"tenant": "default", "scopes": ["runs"]}
    made = await stack.api.call("POST", "/v1/operator/keys", body=body)
    async with stack.as_holder(made["key"]) as holder:
        watching = asyncio.create_task(holder.frames(f"/v1/runs/{run_id}/stream"))
        await until(stack.lab.submissions, lambda jobs: any(job["account"] == "lossy" for job in jobs))
        assert (await holder.ask("GET", "/v1/runs")).status == 200
        assert (await stack.api.ask("DELETE", f"/v1/operator/keys/{made['id']}")).status == 204

        async def status() -> int:
            return (await holder.ask("GET", "/v1/runs")).status

        await until(status, lambda seen: seen == 401, within_s=REVOKED_WITHIN_S)
        async with asyncio.timeout(REVOKED_WITHIN_S):
            frames = await watching
    assert frames[0]["event"] == "run_created"
    await stack.lab.account("lossy", running=60)
    assert (await stack.api.finished(run_id))["status"] == "succeeded"


async def test_the_books_agree(stack: Stack) -> None:
    """VER-7: whoever asked, every accepted job is one Attempt of ours and nothing was sent twice."""
    await books.agree(stack)
