"""fal, Replicate, DashScope and OpenAI's clips against the studio, through the real service."""

from dataclasses import dataclass

import pytest

from pointsman.provider_adapter.v1 import provider_pb2 as p


@dataclass(frozen=True)
class Queue:
    """One account of the studio: its models, and what its dialect says of refusals and cancels."""

    account: str
    clips: str
    pictures: str = ""
    asked: float = 3.5
    seconds: int = 4
    stops_running: bool = False

    @property
    def given(self) -> dict:
        """What a clip is asked for with."""
        return {
            "prompt": "a storm over the sea",
            "duration_s": self.asked,
            "resolution": "720p",
            "ratio": "16:9",
        }


FAL = Queue("gale", "bytedance/seedance/v2/text-to-video", "fal-ai/flux/dev")
REPLICATE = Queue("haze", "bytedance/seedance-1-pro", "black-forest-labs/flux-dev", stops_running=True)
DASHSCOPE = Queue("iris", "wan2.7-t2v", "wan2.2-t2i-flash")
OPENAI = Queue("juniper", "sora-2", asked=4)
QUEUES = [FAL, REPLICATE, DASHSCOPE, OPENAI]
CANCELS = [FAL, REPLICATE, DASHSCOPE]
LISTS = [REPLICATE, DASHSCOPE, OPENAI]


def named(queue: Queue) -> str:
    """The id of a case."""
    return queue.account


@pytest.mark.parametrize("queue", QUEUES, ids=named)
async def test_a_clip_from_submission_to_artifact(rig, job, queue: Queue) -> None:
    """ERR-1a: create, poll, artifact: one submission, charged once, and the bytes are kept by their digest."""
    clip = job("clip-1", model=queue.clips, **queue.given)
    sent = await rig.submit(queue.account, clip)
    answer = await rig.finished(queue.account, clip, sent.provider_task_id)
    assert answer.state == p.JOB_STATE_SUCCEEDED
    [artifact] = answer.result.artifacts
    assert artifact.media_type == "video/mp4"
    assert len(await rig.blobs.read(artifact.sha256)) == artifact.size_bytes > 0
    [taken] = await rig.submissions(queue.account)
    assert (taken["client_token"], taken["status"], taken["kind"]) == ("clip-1", "succeeded", "video")
    assert await rig.posts(queue.account) == 1
    if queue is FAL:
        assert answer.result.usage["billable_units"] == queue.seconds
    else:
        assert answer.result.usage["seconds"] == queue.seconds


@pytest.mark.parametrize("queue", CANCELS, ids=named)
async def test_pictures_are_jobs_too(rig, job, queue: Queue) -> None:
    """ERR-1a: where pictures are made in a queue, they are polled for and kept in the provider's order."""
    work = job("p-1", "image", queue.pictures, prompt="fire", size="256x128", n=2, seed=3)
    sent = await rig.submit(queue.account, work)
    answer = await rig.finished(queue.account, work, sent.provider_task_id)
    assert [artifact.media_type for artifact in answer.result.artifacts] == ["image/png"] * 2
    assert len({artifact.sha256 for artifact in answer.result.artifacts}) == 2
    assert len(await rig.submissions(queue.account)) == 1


@pytest.mark.parametrize("queue", QUEUES, ids=named)
async def test_a_first_frame_travels_along(rig, job, queue: Queue) -> None:
    """ERR: a material given by digest reaches the provider as a data URL."""
    picture = job("p-1", "image", FAL.pictures, prompt="fire", size="256x256")
    sent = await rig.submit("gale", picture)
    [frame] = (await rig.finished("gale", picture, sent.provider_task_id)).result.artifacts
    clip = job("c-1", model=queue.clips, **queue.given, first_frame={"artifact": frame.sha256})
    sent = await rig.submit(queue.account, clip)
    assert (await rig.finished(queue.account, clip, sent.provider_task_id)).state == p.JOB_STATE_SUCCEEDED


@pytest.mark.parametrize("queue", QUEUES, ids=named)
async def test_every_state_is_seen(rig, job, queue: Queue) -> None:
    """ERR-1a: queued, running, and the end, each as the provider says it."""
    await rig.lab("POST", f"/accounts/{queue.account}", {"queue_s": 30.0})
    clip = job("s-1", model=queue.clips, **queue.given)
    sent = await rig.submit(queue.account, clip)
    assert (await rig.poll(queue.account, clip, sent.provider_task_id)).state == p.JOB_STATE_QUEUED
    await rig.lab("POST", f"/accounts/{queue.account}", {"queue_s": 0.0, "render_s": 30.0})
    await rig.polled(queue.account, clip, sent.provider_task_id, lambda state: state == p.JOB_STATE_RUNNING)
    await rig.lab("POST", f"/accounts/{queue.account}", {"render_s": 0.0})
    assert (await rig.finished(queue.account, clip, sent.provider_task_id)).state == p.JOB_STATE_SUCCEEDED


@pytest.mark.parametrize("queue", QUEUES, ids=named)
async def test_refusals_keep_their_kind(rig, job, queue: Queue) -> None:
    """ERR-1: moderation, a model that is not there, a full account, a revoked key: each by its code."""
    for prompt, model, code in (
        ("[moderated] x", queue.clips, "content_rejected"),
        ("x", "no/such", "model_unavailable"),
    ):
        fault = await rig.refusal(rig.submit(queue.account, job(model=model, **queue.given | {"prompt": prompt})))
        assert fault.code == code
    await rig.lab("POST", f"/accounts/{queue.account}", {"concurrency": 0})
    busy = await rig.refusal(rig.submit(queue.account, job(model=queue.clips, **queue.given)))
    assert (busy.code, busy.category, busy.scope) == ("rate_limited", "capacity", "supply")
    await rig.lab("POST", f"/accounts/{queue.account}", {"revoked": True})
    revoked = await rig.refusal(rig.submit(queue.account, job(model=queue.clips, **queue.given)))
    assert (revoked.code, revoked.scope) == ("key_invalid", "channel")
    assert await rig.submissions(queue.account) == []


@pytest.mark.parametrize("queue", QUEUES, ids=named)
async def test_a_late_refusal_is_data_of_the_poll(rig, job, queue: Queue) -> None:
    """HLT-5 ERR-1: a job that fails by moderation is an answered poll with a content failure, wherever it is told."""
    clip = job("m-1", model=queue.clips, **queue.given | {"prompt": "[moderated-late] x"})
    sent = await rig.submit(queue.account, clip)
    answer = await rig.finished(queue.account, clip, sent.provider_task_id)
    assert (answer.state, answer.failure.code) == (p.JOB_STATE_FAILED, "content_rejected")


@pytest.mark.parametrize(
    ("queue", "step", "code"),
    [
        (FAL, {"fail_task": {"code": "runner_scheduling_failure", "message": "No runner"}}, "out_of_stock"),
        (FAL, {"fail_task": {"code": "runner_disconnected", "message": "Runner disconnected"}}, "provider_error"),
        (FAL, {"expire_task": True}, "out_of_stock"),
        (REPLICATE, {"fail_task": {"code": "E6716", "message": "Timeout starting prediction"}}, "out_of_stock"),
        (REPLICATE, {"fail_task": {"code": "E9828", "message": "Director: unexpected error"}}, "provider_error"),
        (REPLICATE, {"expire_task": True}, "out_of_stock"),
        (
            DASHSCOPE,
            {"fail_task": {"code": "InternalError.Timeout", "message": "An internal timeout"}},
            "provider_error",
        ),
        (OPENAI, {"fail_task": {"code": "server_error", "message": "The server had an error"}}, "provider_error"),
    ],
    ids=lambda value: value.account if isinstance(value, Queue) else None,
)
async def test_a_failed_job_says_why(rig, job, queue: Queue, step: dict, code: str) -> None:
    """ERR-1: a failure of the job is data; its reason is the provider's own word for it."""
    await rig.script(step, account=queue.account)
    clip = job("f-1", model=queue.clips, **queue.given)
    sent = await rig.submit(queue.account, clip)
    answer = await rig.finished(queue.account, clip, sent.provider_task_id)
    assert (answer.state, answer.failure.code) == (p.JOB_STATE_FAILED, code)


async def test_a_task_that_dashscope_has_lost_is_told_as_lost(rig, job) -> None:
    """HLT-13: UNKNOWN says nothing about the job; the question failed, and will fail for ever."""
    await rig.script({"expire_task": True}, account="iris")
    clip = job("u-1", model=DASHSCOPE.clips, **DASHSCOPE.given)
    sent = await rig.submit("iris", clip)
    for task_id in (sent.provider_task_id, "nobody"):
        fault = await rig.failed_poll("iris", clip, task_id)
        assert (fault.code, fault.metadata["reason"]) == ("poll_failed", "task_lost")


@pytest.mark.parametrize("queue", QUEUES, ids=named)
async def test_a_failed_poll_says_nothing_about_the_job(rig, job, queue: Queue) -> None:
    """HLT-13: 500, 401 and a cut answer of a poll are of category unknown; the job goes on."""
    clip = job("q-1", model=queue.clips, **queue.given)
    sent = await rig.submit(queue.account, clip)
    await rig.script({"status": 500}, {"status": 401}, {"drop_after_body": True}, method="GET", account=queue.account)
    for reason in ("provider_error", "key_invalid", "provider_timeout"):
        fault = await rig.refusal(rig.poll(queue.account, clip, sent.provider_task_id))
        assert (fault.code, fault.category, fault.metadata["reason"]) == ("poll_failed", "unknown", reason)
    lost = await rig.refusal(rig.poll(queue.account, clip, "nobody"))
    assert (lost.code, lost.metadata["reason"]) == ("poll_failed", "task_lost")
    assert (await rig.finished(queue.account, clip, sent.provider_task_id)).state == p.JOB_STATE_SUCCEEDED


@pytest.mark.parametrize("queue", CANCELS, ids=named)
async def test_a_job_is_cancelled_where_the_provider_does_it(rig, job, queue: Queue) -> None:
    """ATT-8: a waiting job is stopped; a running one only at Replicate, and nobody claims otherwise."""
    await rig.lab("POST", f"/accounts/{queue.account}", {"queue_s": 30.0})
    clip = job("x-1", model=queue.clips, **queue.given)
    sent = await rig.submit(queue.account, clip)
    assert (await rig.cancel(queue.account, clip, sent.provider_task_id)).cancelled
    assert (await rig.poll(queue.account, clip, sent.provider_task_id)).state == p.JOB_STATE_CANCELLED
    await rig.lab("POST", f"/accounts/{queue.account}", {"queue_s": 0.0, "render_s": 30.0})
    running = await rig.submit(queue.account, clip)
    await rig.polled(queue.account, clip, running.provider_task_id, lambda state: state == p.JOB_STATE_RUNNING)
    told = await rig.cancel(queue.account, clip, running.provider_task_id)
    assert told.cancelled is queue.stops_running
    assert await rig.posts(queue.account) == 2


async def test_clips_of_openai_cannot_be_cancelled(rig, job) -> None:
    """ATT-8: there is no cancel, and nothing is sent."""
    clip = job("x-1", model=OPENAI.clips, **OPENAI.given)
    assert not (await rig.cancel("juniper", clip, "video_1")).cancelled


@pytest.mark.parametrize("queue", LISTS, ids=named)
async def test_a_lost_answer_is_left_open_and_its_record_named(rig, job, queue: Queue) -> None:
    """ATT-6 ERR-1a: the job was taken and the answer lost: sent once, and a record just like it proves nothing."""
    await rig.script({"drop_after_body": True}, account=queue.account)
    clip = job("lost-1", model=queue.clips, **queue.given)
    fault = await rig.refusal(rig.submit(queue.account, clip))
    assert (fault.code, fault.retryable) == ("submission_unknown", False)
    told = await rig.reconcile(queue.account, clip, sent_s_ago=60.0)
    assert told.verdict == p.RECONCILE_VERDICT_UNKNOWN
    [taken] = await rig.submissions(queue.account)
    assert taken["provider_task_id"] in told.evidence
    assert await rig.posts(queue.account) == 1


@pytest.mark.parametrize("queue", LISTS, ids=named)
async def test_a_job_that_never_arrived_is_not_accepted_once_it_is_old_enough(rig, job, queue: Queue) -> None:
    """ATT-6: a complete list without anything that may be ours proves it, late enough and not before."""
    await rig.script({"drop_after_body": True, "accept": False}, account=queue.account)
    clip = job("gone-1", model=queue.clips, **queue.given)
    assert (await rig.refusal(rig.submit(queue.account, clip))).code == "submission_unknown"
    early = await rig.reconcile(queue.account, clip, sent_s_ago=0.0)
    late = await rig.reconcile(queue.account, clip, sent_s_ago=60.0)
    assert (early.verdict, late.verdict) == (p.RECONCILE_VERDICT_UNKNOWN, p.RECONCILE_VERDICT_NOT_ACCEPTED)
    assert await rig.submissions(queue.account) == []


@pytest.mark.parametrize("queue", [REPLICATE, OPENAI], ids=named)
async def test_a_record_of_other_words_is_not_ours(rig, job, queue: Queue) -> None:
    """ATT-6: where records tell their words, those of others are told apart."""
    other = job("other-1", model=queue.clips, **queue.given | {"prompt": "a calm"})
    await rig.submit(queue.account, other)
    told = await rig.reconcile(queue.account, job("gone-1", model=queue.clips, **queue.given), sent_s_ago=50.0)
    assert told.verdict == p.RECONCILE_VERDICT_NOT_ACCEPTED


async def test_fal_keeps_no_records_to_ask(rig, job) -> None:
    """ATT-6: an unanswered submission stays unknown until somebody decides; it is never sent again."""
    await rig.script({"drop_after_body": True}, account="gale")
    clip = job("lost-1", model=FAL.clips, **FAL.given)
    assert (await rig.refusal(rig.submit("gale", clip))).code == "submission_unknown"
    told = await rig.reconcile("gale", clip, sent_s_ago=600.0)
    assert (told.verdict, told.evidence) == (p.RECONCILE_VERDICT_UNKNOWN, "adapter 'fal' keeps no records to ask")
    assert await rig.posts("gale") == 1


async def test_a_clip_that_the_key_does_not_open_now_is_fetched_later(rig, job) -> None:
    """HLT-13: bytes that the key does not open now fail the poll; with the key they are there."""
    clip = job("k-1", model=OPENAI.clips, **OPENAI.given)
    sent = await rig.submit("juniper", clip)
    await rig.script({"status": 401}, path="*/content", method="GET", account="juniper")
    fault = await rig.failed_poll("juniper", clip, sent.provider_task_id)
    assert (fault.code, fault.metadata["evidence"]) == ("poll_failed", "media: status 401")
    assert (await rig.finished("juniper", clip, sent.provider_task_id)).state == p.JOB_STATE_SUCCEEDED
