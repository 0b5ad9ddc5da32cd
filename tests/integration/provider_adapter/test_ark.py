"""Ark video tasks and pictures against the studio, through the real service."""

from pointsman.provider_adapter.v1 import provider_pb2 as p


async def test_a_clip_from_submission_to_artifact(rig, job) -> None:
    """ERR-1a: create, poll, artifact: one POST, and the bytes are kept by their digest."""
    clip = job(prompt="a storm over the sea", duration_s=3.5, resolution="480p", ratio="16:9", seed=7)
    sent = await rig.submit("aurora", clip)
    assert sent.provider_task_id.startswith("cgt-")
    answer = await rig.finished("aurora", clip, sent.provider_task_id)
    assert answer.state == p.JOB_STATE_SUCCEEDED
    [artifact] = answer.result.artifacts
    assert artifact.media_type == "video/mp4"
    assert len(await rig.blobs.read(artifact.sha256)) == artifact.size_bytes > 0
    assert answer.result.output["duration"] == 4  # 3.5 s are rounded up
    assert answer.result.usage["total_tokens"] > 0
    assert await rig.posts("aurora") == 1


async def test_a_lost_answer_is_found_by_reconciling(rig, job) -> None:
    """ATT-6 ERR-1a: the job was taken and the answer lost: unknown, never re-sent, found in the provider's list."""
    await rig.script({"drop_after_body": True}, account="aurora")
    clip = job("lost-1", prompt="a storm", duration_s=4)
    fault = await rig.refusal(rig.submit("aurora", clip))
    assert (fault.code, fault.category, fault.scope, fault.retryable) == (
        "submission_unknown",
        "unknown",
        "attempt",
        False,
    )
    assert await rig.posts("aurora") == 1
    found = await rig.reconcile("aurora", clip)
    assert found.verdict == p.RECONCILE_VERDICT_ACCEPTED
    [taken] = await rig.submissions("aurora")
    answer = await rig.finished("aurora", clip, found.provider_task_id)
    assert answer.state == p.JOB_STATE_SUCCEEDED
    assert taken["client_token"] == "lost-1"
    assert await rig.posts("aurora") == 1


async def test_a_job_that_never_arrived_is_not_accepted_once_it_is_old_enough(rig, job) -> None:
    """ATT-6: a complete listing without our token proves nothing at first, and the contrary after a while."""
    await rig.script({"drop_after_body": True, "accept": False}, account="aurora")
    clip = job("gone-1", prompt="a storm", duration_s=4)
    fault = await rig.refusal(rig.submit("aurora", clip))
    assert fault.code == "submission_unknown"
    early = await rig.reconcile("aurora", clip, sent_s_ago=0.0)
    assert early.verdict == p.RECONCILE_VERDICT_UNKNOWN
    living = await rig.reconcile("aurora", clip, sent_s_ago=8.0)
    assert living.verdict == p.RECONCILE_VERDICT_UNKNOWN
    late = await rig.reconcile("aurora", clip, sent_s_ago=60.0)
    assert late.verdict == p.RECONCILE_VERDICT_NOT_ACCEPTED
    assert await rig.submissions("aurora") == []


async def test_refusals_keep_their_kind(rig, job) -> None:
    """ERR-1: moderation, a real person, a bad parameter, a model that is not there: each by its code."""
    for prompt, code, category in (
        ("[moderated] x", "content_rejected", "content"),
        ("forbidden:nsfw", "content_rejected", "content"),
        ("[real-person] x", "real_person_rejected", "content"),
    ):
        fault = await rig.refusal(rig.submit("boreal", job(prompt=prompt, duration_s=4)))
        assert (fault.code, fault.category, fault.scope, fault.retryable) == (code, category, "request", False)
    fault = await rig.refusal(rig.submit("aurora", job(prompt="x", duration_s=400)))
    assert (fault.code, fault.category) == ("invalid_request", "request")
    fault = await rig.refusal(rig.submit("aurora", job(model="nobody", prompt="x")))
    assert (fault.code, fault.scope, fault.retryable) == ("model_unavailable", "supply", True)


async def test_a_late_refusal_is_data_of_the_poll(rig, job) -> None:
    """HLT-5 ERR-1: a task that fails by moderation is an answered poll with a content failure."""
    clip = job(prompt="[moderated-late] x", duration_s=4)
    sent = await rig.submit("aurora", clip)
    answer = await rig.finished("aurora", clip, sent.provider_task_id)
    assert answer.state == p.JOB_STATE_FAILED
    assert answer.failure.code == "content_rejected"
    assert answer.failure.evidence == "body.error.code"


async def test_busy_and_revoked_and_broken(rig, job) -> None:
    """ERR-1: 429 is capacity with its wait, a revoked key is the channel's, a 500 is the supply's."""
    await rig.script({"status": 429, "retry_after": 2}, {"status": 500}, {"status": 403}, account="aurora")
    busy = await rig.refusal(rig.submit("aurora", job(prompt="x")))
    assert (busy.code, busy.category, busy.scope, busy.retry_after_ms) == ("rate_limited", "capacity", "supply", 2000)
    broken = await rig.refusal(rig.submit("aurora", job(prompt="x")))
    assert (broken.code, broken.category, broken.scope) == ("provider_error", "supply", "supply")
    owing = await rig.refusal(rig.submit("aurora", job(prompt="x")))
    assert (owing.code, owing.scope) == ("balance_exhausted", "channel")
    await rig.lab("POST", "/accounts/aurora", {"revoked": True})
    revoked = await rig.refusal(rig.submit("aurora", job(prompt="x")))
    assert (revoked.code, revoked.category, revoked.scope) == ("key_invalid", "supply", "channel")
    assert revoked.provider == "ark"


async def test_a_failed_poll_says_nothing_about_the_job(rig, job) -> None:
    """HLT-13: 500, 401, 404 and a cut answer of a poll are faults of category unknown; the job goes on."""
    clip = job(prompt="x", duration_s=4)
    sent = await rig.submit("aurora", clip)
    await rig.script({"status": 500}, {"status": 401}, {"drop_after_body": True}, method="GET")
    for reason in ("provider_error", "key_invalid", "provider_timeout"):
        fault = await rig.refusal(rig.poll("aurora", clip, sent.provider_task_id))
        assert (fault.code, fault.category, fault.scope) == ("poll_failed", "unknown", "attempt")
        assert fault.metadata["reason"] == reason
    lost = await rig.refusal(rig.poll("aurora", clip, "cgt-nobody"))
    assert (lost.code, lost.metadata["reason"]) == ("poll_failed", "task_lost")
    assert (await rig.finished("aurora", clip, sent.provider_task_id)).state == p.JOB_STATE_SUCCEEDED


async def test_a_queued_job_is_cancelled_and_a_running_one_runs_on(rig, job) -> None:
    """ATT-8: the provider's cancel is tried, and its refusal is told as such."""
    await rig.lab("POST", "/accounts/aurora", {"queue_s": 30.0})
    clip = job(prompt="x", duration_s=4)
    sent = await rig.submit("aurora", clip)
    assert (await rig.cancel("aurora", clip, sent.provider_task_id)).cancelled
    assert (await rig.poll("aurora", clip, sent.provider_task_id)).state == p.JOB_STATE_CANCELLED
    await rig.lab("POST", "/accounts/aurora", {"queue_s": 0.0, "render_s": 30.0})
    running = await rig.submit("aurora", clip)
    await rig.polled("aurora", clip, running.provider_task_id, lambda state: state == p.JOB_STATE_RUNNING)
    assert not (await rig.cancel("aurora", clip, running.provider_task_id)).cancelled


async def test_an_artifact_is_sent_along_as_a_first_frame(rig, job) -> None:
    """ERR: a material given by digest travels to the provider as a data URL; a digest that is not stored is refused."""
    picture = await rig.submit("ember", job("p", "image", "doubao-seedream-4-0-250828", prompt="fire", size="640x640"))
    [frame] = picture.result.artifacts
    assert frame.media_type == "image/jpeg"
    clip = job("c", prompt="it moves", duration_s=4, first_frame={"artifact": frame.sha256})
    sent = await rig.submit("aurora", clip)
    assert (await rig.finished("aurora", clip, sent.provider_task_id)).state == p.JOB_STATE_SUCCEEDED
    fault = await rig.refusal(rig.submit("aurora", job(prompt="x", first_frame={"artifact": "0" * 64})))
    assert fault.code == "material_unreachable"


async def test_several_pictures_come_in_one_answer(rig, job) -> None:
    """SYN-1: pictures are done within the submission, in the provider's order."""
    pictures = job("p", "image", "doubao-seedream-4-0-250828", prompt="fire", size="640x640", n=2, seed=3)
    sent = await rig.submit("ember", pictures)
    assert sent.provider_task_id == ""
    assert len(sent.result.artifacts) == 2
    assert sent.result.usage["generated_images"] == 2
    fault = await rig.refusal(
        rig.submit("ember", job("q", "image", "doubao-seedream-4-0-250828", prompt="[moderated-late]", size="640x640"))
    )
    assert (fault.code, fault.category) == ("content_rejected", "content")
