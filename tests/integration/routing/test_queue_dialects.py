"""Clips through the queues of fal, Replicate and DashScope and through OpenAI's, dispatched by the whole product."""

import pytest
from google.protobuf.struct_pb2 import Struct

from libs.rpc.faulting import faults_from_rpc
from pointsman.routing.v1 import catalog_service_pb2, routing_service_pb2, task_pb2
from tests.integration.routing.stack import CALL_S, Stack

QUEUES = {
    "fal": ("gale", "bytedance/seedance/v2/text-to-video"),
    "replicate": ("haze", "bytedance/seedance-1-pro"),
    "dashscope": ("iris", "wan2.7-t2v"),
    "openai": ("juniper", "sora-2"),
}
"""Account and upstream model by adapter."""


async def submitted(stack: Stack, adapters: list[str], deadline_s: float = 60) -> None:
    """One Task of a model that these adapters serve, the first of them at the better price."""
    channels = supplies = bindings = ""
    for index, adapter in enumerate(adapters):
        account, upstream = QUEUES[adapter]
        (stack.folder / account).write_text(stack.studio.key(account))
        channels += (
            f"  - {{id: {adapter}-main, adapter: {adapter}, base_url: '{stack.studio.base_url(account)}',"
            f" secret: 'file:{stack.folder}/{account}', poll_interval_s: 0.1, timeouts: {{submit_s: 2}}}}\n"
        )
        supplies += (
            f"  - {{id: {adapter}/it, channel: {adapter}-main, upstream_model: {upstream}, kind: video,"
            f" prices: [p{index}], evidence: waived, evidence_reason: a test}}\n"
        )
        bindings += f"{{supply: {adapter}/it, tier: exact}}, "
    text = (
        f"version: 1\ncurrency: CNY\nchannels:\n{channels}supplies:\n{supplies}"
        f"models: [{{id: clip, kind: video, policy: plain, enabled: true, published: true, bindings: [{bindings}]}}]\n"
        "prices:\n"
        "  - {id: p0, version: 1, currency: CNY, billing_mode: per_second, rate: '1.00'}\n"
        "  - {id: p1, version: 1, currency: CNY, billing_mode: per_second, rate: '1.50'}\n"
        f"policies: [{{id: plain, order: cost_first, max_attempts: 2, uncertain_deadline_s: {deadline_s:g}}}]\n"
    )
    async with faults_from_rpc():
        answer = await stack.catalog.Apply(catalog_service_pb2.ApplyRequest(catalog_yaml=text), timeout=CALL_S)
    assert all(item.published for item in answer.publications), answer
    values = Struct()
    values.update({"prompt": "a boat", "duration_s": 4, "resolution": "720p", "ratio": "16:9"})
    asked = routing_service_pb2.SubmitTaskRequest(request_id="t1", tenant="t", model="clip", input=values)
    async with faults_from_rpc():
        await stack.routing.SubmitTask(asked, timeout=CALL_S)


@pytest.mark.parametrize("adapter", QUEUES)
async def test_a_clip_is_made_once(stack: Stack, adapter: str) -> None:
    """VER-7: queued, submitted, polled, fetched and booked: one Attempt, one job, one charge, an artifact."""
    await submitted(stack, [adapter])
    (task,) = await stack.ended("t1")
    (attempt,) = task.attempts
    assert task.state == task_pb2.TASK_STATE_SUCCEEDED, task.failure
    assert [artifact.media_type for artifact in task.result.artifacts] == ["video/mp4"]
    ledger = await stack.lab("GET", "/ledger")
    (job,) = ledger["submissions"]
    assert (job["client_token"], job["status"], job["account"]) == (
        attempt.client_token,
        "succeeded",
        QUEUES[adapter][0],
    )
    assert ledger["posts"]["by_client_token"] == {attempt.client_token: 1}


@pytest.mark.parametrize("adapter", ["fal", "openai"])
async def test_a_lost_answer_is_nobodys_to_repeat(stack: Stack, adapter: str) -> None:
    """ATT-6, VER-7: the job was taken and nothing can tell ours from another: it ends unresolved, and is sent once."""
    await stack.script({"drop_after_body": True}, account=QUEUES[adapter][0])
    other = "replicate" if adapter == "fal" else "fal"
    await submitted(stack, [adapter, other], deadline_s=4)
    (task,) = await stack.ended("t1")
    assert (task.state, task.failure.code) == (task_pb2.TASK_STATE_FAILED, "submission_unresolved")
    (attempt,) = task.attempts
    ledger = await stack.lab("GET", "/ledger")
    assert ledger["posts"]["by_client_token"] == {attempt.client_token: 1}
    assert len(ledger["submissions"]) == 1


@pytest.mark.parametrize("adapter", ["replicate", "dashscope"])
async def test_a_submission_that_never_arrived_is_followed_by_another(stack: Stack, adapter: str) -> None:
    """ATT-6, VER-7: the list proves that there is no job, so the next supply makes it: one job in all."""
    await stack.script({"drop_after_body": True, "accept": False}, account=QUEUES[adapter][0])
    await submitted(stack, [adapter, "fal"])
    (task,) = await stack.ended("t1")
    assert task.state == task_pb2.TASK_STATE_SUCCEEDED, task.failure
    assert len(task.attempts) == 2
    (job,) = await stack.submissions()
    assert (job["account"], job["client_token"]) == ("gale", task.attempts[1].client_token)
