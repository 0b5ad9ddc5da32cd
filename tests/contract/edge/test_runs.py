"""POST /v1/runs and what follows it, through ASGI and real stubs."""

import asyncio
import base64
import hashlib

import pytest

from libs.faults.fault import Fault
from tests.contract.edge.house import EdgeHouse
from tests.support.media import picture
from tests.support.waiting import eventually

ORDER = {"model": "clip", "input": {"prompt": "a crane at dawn", "duration_s": 5}}
RUN_FIELDS = {
    "id", "status", "model", "created_at", "started_at", "finished_at", "error", "result", "usage", "nodes", "labels",
    "production", "budget_id", "pending_steering", "backpressure",
}  # fmt: skip


async def test_a_new_run_is_pending(edge: EdgeHouse) -> None:
    """EDG-4: creating a Run answers 202 with state pending, its place, and no cost yet."""
    user = await edge.user()
    body = ORDER | {"labels": {"act": "1"}, "options": {"degradation": "strict", "priority": "high", "deadline_s": 60}}
    made = await user.post("/v1/runs", json=body)
    assert made.status_code == 202, made.text
    run = made.json()
    assert set(run) == RUN_FIELDS
    assert (run["status"], run["model"], run["labels"]) == ("pending", "clip", {"act": "1"})
    assert run["usage"] == {"cost": None, "attempts": 0, "supply": None}
    assert run["result"] is None
    assert run["error"] is None
    assert made.headers["location"] == f"/v1/runs/{run['id']}"
    sent = edge.runs.created[0]
    assert (sent.tenant, sent.options.degradation, sent.options.priority) == ("studio", "strict", 1)
    assert sent.options.deadline_time.ToSeconds() == edge.clock.now().timestamp() + 60


async def test_a_run_shows_what_it_gave(edge: EdgeHouse) -> None:
    """TIER-6: a degraded result says what was lost, with files, money and the supply that made it."""
    user = await edge.user()
    edge.runs.add("r1")
    sha256 = "ab" * 32
    edge.runs.succeed("r1", sha256)
    run = (await user.get("/v1/runs/r1")).json()
    file = {"sha256": sha256, "media_type": "video/mp4", "bytes": 12, "url": f"/v1/artifacts/{sha256}"}
    assert run["result"] == {
        "artifacts": [file],
        "output": {},
        "degraded": True,
        "requested_profile": "933",
        "actual_profile": "900",
        "dropped_inputs": ["reference_videos"],
    }
    assert run["usage"] == {
        "cost": {"currency": "CNY", "amount": "6.50"},
        "attempts": 1,
        "supply": "ark-main/seedance",
    }
    node = {"id": "main", "kind": "generate", "status": "succeeded", "task_id": "task-1", "waiting_reason": None}
    (told,) = run["nodes"]
    assert told == told | node | {"artifacts": [file], "error": None}
    assert run["created_at"] == "2026-01-01T12:00:00Z"


async def test_faults_after_the_creation_are_data(edge: EdgeHouse) -> None:
    """EDG-4: a Run that failed is read with 200 and tells its error."""
    user = await edge.user()
    edge.runs.add("r1")
    edge.runs.fail("r1", Fault.of("content_rejected", "moderation refused the prompt"))
    read = await user.get("/v1/runs/r1")
    assert read.status_code == 200
    assert read.json()["error"] == {
        "code": "content_rejected",
        "message": "moderation refused the prompt",
        "retryable": False,
        "category": "content",
        "scope": "request",
    }


async def test_the_providers_own_words_are_told(edge: EdgeHouse) -> None:
    """EDG-4: which material could not be read, or why a prompt was refused, is often in the provider's words alone."""
    user = await edge.user()
    for name, words in (("r1", "404 for image 2, key sk-abcdefghijklmnopqrstuvwx"), ("r2", "")):
        edge.runs.add(name)
        edge.runs.fail(name, Fault.of("material_unreachable", "unreadable", provider_message=words))
    told = (await user.get("/v1/runs/r1")).json()["error"]["message"]
    assert told.startswith("unreadable; the provider said: 404 for image 2")
    assert "abcdefghijklmnopqrstuvwx" not in told
    assert (await user.get("/v1/runs/r2")).json()["error"]["message"] == "unreadable"


async def test_pages_and_filters(edge: EdgeHouse) -> None:
    """AUTH-1: a list holds the tenant's Runs alone, newest first, page by page, by status and label."""
    user = await edge.user()
    for number in range(3):
        edge.runs.add(f"r{number}", labels={"act": "1"} if number else {})
    edge.runs.add("r9", "other")
    edge.runs.succeed("r2", "cd" * 32)
    first = (await user.get("/v1/runs", params={"page_size": 2})).json()
    assert [run["id"] for run in first["runs"]] == ["r2", "r1"]
    rest = (await user.get("/v1/runs", params={"page_token": first["next_page_token"]})).json()
    assert ([run["id"] for run in rest["runs"]], rest["next_page_token"]) == (["r0"], "")
    done = (await user.get("/v1/runs", params={"status": "succeeded,failed"})).json()["runs"]
    assert [run["id"] for run in done] == ["r2"]
    labelled = (await user.get("/v1/runs", params={"label": "act=1"})).json()["runs"]
    assert [run["id"] for run in labelled] == ["r2", "r1"]


@pytest.mark.parametrize(
    "query, code, status",
    [
        ({"status": "done"}, "validation_failed", 422),
        ({"page_size": "0"}, "validation_failed", 422),
        ({"page_size": "many"}, "validation_failed", 422),
        ({"page_size": "1001"}, "validation_failed", 422),
        ({"page_token": "bad"}, "malformed_request", 400),
        ({"label": "a\x00b"}, "validation_failed", 422),
    ],
)
async def test_lists_refuse_what_they_cannot_use(
    edge: EdgeHouse, query: dict[str, str], code: str, status: int
) -> None:
    """EDG-2: a filter that cannot be is 422, a page token that no page gave is 400."""
    user = await edge.user()
    answer = await user.get("/v1/runs", params=query)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_join_and_cancel(edge: EdgeHouse) -> None:
    """EDG-2: join answers the Run at rest or 504 join_timeout; cancel answers 202, on an ended Run 409 run_terminal."""
    user = await edge.user()
    edge.runs.add("r1")
    late = await user.get("/v1/runs/r1/join", params={"timeout_s": 7})
    assert (late.status_code, late.json()["code"], late.json()["retryable"]) == (504, "join_timeout", True)
    assert "7 s" in late.json()["detail"]
    cancelled = await user.post("/v1/runs/r1/cancel", json={"reason": "no more"})
    assert (cancelled.status_code, cancelled.json()["status"]) == (202, "cancelled")
    joined = await user.get("/v1/runs/r1/join")
    assert (joined.status_code, joined.json()["status"]) == (200, "cancelled")
    again = await user.post("/v1/runs/r1/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "run_terminal")
    for timeout in ("0", "601", "x"):
        wrong = await user.get("/v1/runs/r1/join", params={"timeout_s": timeout})
        assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/query/timeout_s")


async def test_one_key_is_one_run(edge: EdgeHouse) -> None:
    """IDEM-1: the same key and body replay the same status and resource; order of fields does not matter."""
    user = await edge.user()
    headers = {"idempotency-key": "order-17"}
    first = await user.post("/v1/runs", json=ORDER, headers=headers)
    turned = {"input": dict(reversed(ORDER["input"].items())), "model": "clip"}
    second = await user.post("/v1/runs", json=turned, headers=headers)
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["id"] == second.json()["id"]
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert len(edge.runs.created) == 1


async def test_a_conflict_wins_over_every_other_fault(edge: EdgeHouse) -> None:
    """IDEM-1: the same key with another body is 422 idempotency_conflict, also when that body is invalid itself."""
    user = await edge.user()
    headers = {"idempotency-key": "order-17"}
    await user.post("/v1/runs", json=ORDER, headers=headers)
    for body in (ORDER | {"model": "other"}, {"nonsense": True}, []):
        answer = await user.post("/v1/runs", json=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_conflict")


async def test_keys_are_the_tenants_own_and_failures_are_not_remembered(edge: EdgeHouse) -> None:
    """IDEM-2: a key is scoped to its tenant; what failed is not kept under it."""
    one, other = await edge.user("one"), await edge.user("other")
    headers = {"idempotency-key": "k"}
    refused = await one.post("/v1/runs", json={"model": "clip"}, headers=headers)
    assert refused.status_code == 422
    first = await one.post("/v1/runs", json=ORDER, headers=headers)
    foreign = await other.post("/v1/runs", json=ORDER | {"labels": {"a": "b"}}, headers=headers)
    assert (first.status_code, foreign.status_code) == (202, 202)
    assert first.json()["id"] != foreign.json()["id"]


async def test_a_key_in_flight_is_waited_for_so_long(edge: EdgeHouse) -> None:
    """IDEM-1: behind a request in flight its repetition waits 5 s, then 409 with Retry-After; the first one goes on."""
    user = await edge.user()
    headers = {"idempotency-key": "k"}
    edge.runs.open.clear()
    first = asyncio.create_task(user.post("/v1/runs", json=ORDER, headers=headers))
    await eventually(lambda: edge.runs.identities)
    late = asyncio.create_task(user.post("/v1/runs", json=ORDER, headers=headers))
    ending = asyncio.create_task(user.post("/v1/runs:cancelByKey", json={"idempotency_key": "k"}))
    await eventually(lambda: len(edge.clock._sleepers) == 2)
    edge.clock.advance(4.9)
    other = await user.post("/v1/runs:cancelByKey", json={"idempotency_key": ""})
    assert other.status_code == 422
    assert not late.done()
    edge.clock.advance(0.1)
    for answer in (await late, await ending):
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_in_progress")
        assert (answer.headers["retry-after"], answer.json()["retryable"]) == ("1", True)
    edge.runs.open.set()
    assert (await first).status_code == 202
    again = await user.post("/v1/runs", json=ORDER, headers=headers)
    assert (again.status_code, again.json()["id"]) == (202, (await first).json()["id"])


async def test_a_cancel_by_a_key_of_nothing(edge: EdgeHouse) -> None:
    """IDEM-3: a key of which no Run comes is 404 after a short wait; another tenant's key is no key of this one."""
    user, other = await edge.user(), await edge.user("other")
    await other.post("/v1/runs", json=ORDER, headers={"idempotency-key": "k"})
    asked = asyncio.create_task(user.post("/v1/runs:cancelByKey", json={"idempotency_key": "k"}))
    for _ in range(8):
        await eventually(lambda: edge.clock._sleepers)
        assert not asked.done()
        edge.clock.advance(0.25)
    answer = await asked
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    for key in ("", "a b", "\u00e9", "x" * 256):
        wrong = await user.post("/v1/runs:cancelByKey", json={"idempotency_key": key})
        assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/idempotency_key")
    found = await other.post("/v1/runs:cancelByKey", json={"idempotency_key": "k", "reason": "enough"})
    assert (found.status_code, found.json()["status"]) == (202, "cancelled")
    ended = await other.post("/v1/runs:cancelByKey", json={"idempotency_key": "k"})
    assert (ended.status_code, ended.json()["code"]) == (409, "run_terminal")


async def test_media_in_the_body_become_artifacts(edge: EdgeHouse) -> None:
    """EDG-2: base64 materials are kept as blobs, travel as digests, and belong to the tenant that sent them."""
    user, other = await edge.user(), await edge.user("other")
    content = picture()
    sha256 = hashlib.sha256(content).hexdigest()
    image = {"base64": base64.b64encode(content).decode(), "media_type": "image/png"}
    body = {"model": "clip", "input": {"prompt": "x", "reference_images": [image], "first_frame": image}}
    made = await user.post("/v1/runs", json=body)
    assert made.status_code == 202, made.text
    sent = edge.runs.created[0].input
    assert sent["reference_images"][0]["artifact"] == sha256
    assert sent["first_frame"]["artifact"] == sha256
    assert (await user.get(f"/v1/artifacts/{sha256}")).content == content
    assert (await other.get(f"/v1/artifacts/{sha256}")).status_code == 404


async def test_faults_of_runs_reach_the_caller(edge: EdgeHouse) -> None:
    """EDG-2: what routing says of an order it would never serve is told at the time of asking, with its pointers."""
    user = await edge.user()
    edge.runs.refusal = Fault.invalid(("/input/duration_s", "must be between 4 and 15"))
    answer = await user.post("/v1/runs", json=ORDER)
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"pointer": "/input/duration_s", "reason": "must be between 4 and 15"}]
    edge.runs.refusal = Fault.of("model_not_published", "model 'clip' is not published")
    assert (await user.post("/v1/runs", json=ORDER)).status_code == 404


async def test_a_steering_text_is_refused_where_it_stands(edge: EdgeHouse) -> None:
    """EDG-1: a fault within an object is named by the pointer of the field (RFC 6901)."""
    user = await edge.user()
    edge.runs.add("r1")
    answer = await user.post("/v1/runs/r1/steer", json={"kind": "style", "data": {"text": 1}})
    assert (answer.status_code, answer.json()["errors"]) == (
        422,
        [{"pointer": "/data/text", "reason": "must be a text"}],
    )


async def test_an_input_is_answered_with_who_may_take_it(edge: EdgeHouse) -> None:
    """STEER-1: 202 with its id and sequence, the nodes that declare its kind, and the kinds that the Run declares."""
    edge.runs.add("r1")
    async with await edge.user() as client:
        told = await client.post("/v1/runs/r1/steer", json={"kind": "style", "data": {"text": "darker"}})
    assert told.status_code == 202
    assert told.json() == {
        "steering_event_id": "steering-1", "sequence": 1, "nodes": ["shots"], "kinds": ["style", "mood"],
    }  # fmt: skip
