"""The answer to a submission is lost after the provider has read it: every way by which it is found out, and none.

The judge is the provider's ledger: how often a token was posted, how many jobs it became, what was charged (VER-7).
"""

from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct

from libs.rpc.faulting import faults_from_rpc
from pointsman.routing.v1 import catalog_service_pb2, routing_service_pb2, task_pb2
from tests.integration.routing.stack import CALL_S, SEEDANCE, Stack
from tests.support.waiting import eventually_async

CLIP = {"prompt": "a boat", "duration_s": 5}
PICTURE = {"prompt": "a boat", "size": "640x360"}
SUPPLIES = {
    "listed": ("aurora", "ark", "video", SEEDANCE, ""),
    "looked-up": ("fjord", "kling", "video", "kling-v3", ""),
    "unmarked": ("glacier", "minimax", "video", "MiniMax-H3", ""),
    "keyed": ("dahlia", "openai", "image", "gpt-image-1", ", reconcile_by: idempotency_key"),
    "mute": ("dahlia", "openai", "image", "gpt-image-1", ""),
}
"""Model: account, adapter, kind, upstream model, what its Channel says beyond that."""


def catalog_of(stack: Stack, deadline_s: float) -> str:
    """One model, Supply and Channel for each way."""
    channels, supplies, models = "", "", ""
    for name, (account, adapter, kind, upstream, more) in SUPPLIES.items():
        (stack.folder / account).write_text(stack.studio.key(account))
        channels += (
            f"  - {{id: {name}-main, adapter: {adapter}, base_url: '{stack.studio.base_url(account)}',"
            f" secret: 'file:{stack.folder}/{account}', poll_interval_s: 0.1, timeouts: {{submit_s: 2}}{more}}}\n"
        )
        supplies += (
            f"  - {{id: {name}/it, channel: {name}-main, upstream_model: {upstream}, kind: {kind}, prices: [{kind}]}}\n"
        )
        models += (
            f"  - {{id: {name}, kind: {kind}, policy: plain, enabled: true, published: true,"
            f" bindings: [{{supply: {name}/it, tier: exact}}]}}\n"
        )
    return (
        f"version: 1\ncurrency: CNY\nchannels:\n{channels}supplies:\n{supplies}models:\n{models}"
        "prices:\n  - {id: video, version: 1, currency: CNY, billing_mode: per_second, rate: '1.00'}\n"
        "  - {id: image, version: 1, currency: CNY, billing_mode: per_image, rate: '0.30'}\n"
        f"policies: [{{id: plain, max_attempts: 2, uncertain_deadline_s: {deadline_s:g}}}]\n"
    )


async def begun(stack: Stack, model: str, given: dict[str, Any], deadline_s: float = 60) -> task_pb2.Task:
    """A Task whose submission is read by the provider and not answered; as soon as it is known to be uncertain."""
    text = catalog_of(stack, deadline_s)
    async with faults_from_rpc():
        answer = await stack.catalog.Apply(catalog_service_pb2.ApplyRequest(catalog_yaml=text), timeout=CALL_S)
    assert all(item.published for item in answer.publications), answer
    await stack.script({"drop_after_body": True}, account=SUPPLIES[model][0])
    values = Struct()
    values.update(given)
    asked = routing_service_pb2.SubmitTaskRequest(request_id="t1", tenant="t", model=model, input=values)
    async with faults_from_rpc():
        await stack.routing.SubmitTask(asked, timeout=CALL_S)

    async def doubted() -> bool:
        states = [attempt.state for attempt in (await stack.task("t1")).attempts]
        return bool(states) and states[0] != task_pb2.ATTEMPT_STATE_SUBMITTING

    await eventually_async(doubted)
    return await stack.task("t1")


async def judged(stack: Stack, task: task_pb2.Task, posts: int) -> None:
    """One Attempt, one job, one charge, so many requests under its token."""
    (attempt,) = task.attempts
    assert (task.state, attempt.number) == (task_pb2.TASK_STATE_SUCCEEDED, 1)
    ledger = await stack.lab("GET", "/ledger")
    (job,) = ledger["submissions"]
    assert (job["client_token"], job["status"]) == (attempt.client_token, "succeeded")
    assert job["charged"] == job["would_charge"]
    assert ledger["posts"]["by_client_token"] == {attempt.client_token: posts}
    assert [artifact.size_bytes > 0 for artifact in task.result.artifacts] == [True]


@pytest.mark.parametrize(("model", "given"), [("listed", CLIP), ("looked-up", CLIP)])
async def test_a_lost_answer_is_looked_up(stack: Stack, model: str, given: dict[str, Any]) -> None:
    """ATT-6, VER-7: by the list of tasks, and by our own id, the job is found and followed; nothing is sent twice."""
    await begun(stack, model, given)
    (task,) = await stack.ended("t1")
    await judged(stack, task, posts=1)


async def test_a_lost_answer_is_asked_for_again_under_the_same_key(stack: Stack) -> None:
    """ATT-6, VER-7: where the Channel's server honours the key, the same request again brings the result: two
    requests, one job, one charge."""
    await stack.lab("POST", "/accounts/dahlia", {"honours_keys": True})
    await begun(stack, "keyed", PICTURE)
    (task,) = await stack.ended("t1")
    await judged(stack, task, posts=2)
    assert (await stack.lab("GET", "/ledger"))["posts"]["replayed"] == 1


async def test_a_key_in_use_is_no_answer_yet(stack: Stack) -> None:
    """ATT-6: while the first request is at work its key answers 409; it is asked again, and still there is one job."""
    await stack.lab("POST", "/accounts/dahlia", {"honours_keys": True, "render_s": 5.5})
    await begun(stack, "keyed", PICTURE)
    (task,) = await stack.ended("t1")
    ledger = await stack.lab("GET", "/ledger")
    assert (task.state, len(ledger["submissions"])) == (task_pb2.TASK_STATE_SUCCEEDED, 1)
    assert ledger["refused"]["by_code"].get("idempotency_key_in_use", 0) >= 1
    assert ledger["totals"]["charged"] == {"USD": "0.04"}


async def test_an_operator_knows(stack: Stack) -> None:
    """ATT-6, VER-7: while the records cannot be read an operator's word settles it; the job is followed."""
    path = "/contents/generations/tasks"
    rule = {"match": {"account": "aurora", "method": "GET", "path": path}, "then": [{"status": 500}]}
    await stack.lab("POST", "/script", rule | {"repeat": "forever"})
    task = await begun(stack, "listed", CLIP)
    (job,) = await stack.submissions()
    await stack.lab("DELETE", "/script")
    asked = routing_service_pb2.ResolveAttemptRequest(
        attempt_id=task.attempts[0].id, resolution="accepted", provider_task_id=job["provider_task_id"]
    )
    async with faults_from_rpc():
        await stack.routing.ResolveAttempt(asked, timeout=CALL_S)
    (ended,) = await stack.ended("t1")
    await judged(stack, ended, posts=1)


async def test_a_job_that_carries_nothing_of_ours_is_a_persons_to_name(stack: Stack) -> None:
    """ATT-6, VER-7: a list that echoes nothing of ours proves neither; whoever sees the job there names it, and it is
    followed: one request, one job, one charge."""
    task = await begun(stack, "unmarked", CLIP)
    (job,) = await stack.submissions()
    asked = routing_service_pb2.ResolveAttemptRequest(
        attempt_id=task.attempts[0].id, resolution="accepted", provider_task_id=job["provider_task_id"]
    )
    async with faults_from_rpc():
        await stack.routing.ResolveAttempt(asked, timeout=CALL_S)
    (ended,) = await stack.ended("t1")
    await judged(stack, ended, posts=1)


async def test_nobody_can_tell(stack: Stack) -> None:
    """ATT-6, COST-12, OPS-6: without any way it ends as `submission_unresolved`, once, with an alert and an anomaly."""
    await begun(stack, "mute", PICTURE, deadline_s=3)
    (task,) = await stack.ended("t1")
    (attempt,) = task.attempts
    assert (task.state, task.failure.code) == (task_pb2.TASK_STATE_FAILED, "submission_unresolved")
    assert attempt.state == task_pb2.ATTEMPT_STATE_UNRESOLVED
    for kind in ("submission_unresolved", "cost_anomaly"):
        (alert,) = await stack.alerts(kind)
        assert alert.subject == attempt.id
    ledger = await stack.lab("GET", "/ledger")
    assert ledger["posts"]["by_client_token"] == {attempt.client_token: 1}
