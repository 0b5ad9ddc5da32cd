"""MiniMax's two interfaces against the studio, through the real service."""

from pointsman.provider_adapter.v1 import provider_pb2 as p

H3, HAILUO = "MiniMax-H3", "MiniMax-Hailuo-2.3"


async def test_a_clip_of_the_second_interface(rig, job) -> None:
    """ERR-1a: create, poll, artifact: one POST, and the seconds that are charged."""
    clip = job(model=H3, prompt="ice breaks", duration_s=4.5, resolution="720p", ratio="9:16")
    sent = await rig.submit("glacier", clip)
    answer = await rig.finished("glacier", clip, sent.provider_task_id)
    assert answer.state == p.JOB_STATE_SUCCEEDED
    [artifact] = answer.result.artifacts
    assert artifact.media_type == "video/mp4"
    assert len(await rig.blobs.read(artifact.sha256)) == artifact.size_bytes > 0
    assert (answer.result.output["resolution"], answer.result.output["duration"]) == ("768P", 5)
    assert answer.result.usage["seconds"] == 5
    [charged] = await rig.submissions("glacier")
    assert (charged["client_token"], charged["would_charge"]) == ("token-1", {"currency": "USD", "amount": "0.40"})
    assert await rig.posts("glacier") == 1


async def test_a_clip_of_the_first_interface_takes_two_questions(rig, job) -> None:
    """ERR-1a: state and file are two questions of one poll."""
    clip = job(model=HAILUO, prompt="ice breaks", duration_s=6, resolution="1080p")
    sent = await rig.submit("glacier", clip)
    answer = await rig.finished("glacier", clip, sent.provider_task_id)
    assert answer.state == p.JOB_STATE_SUCCEEDED
    assert len(answer.result.artifacts) == 1
    assert answer.result.output["video_width"] == 1920
    [charged] = await rig.submissions("glacier")
    assert charged["would_charge"] == {"currency": "USD", "amount": "0.48"}
    assert await rig.posts("glacier") == 1


async def test_a_lost_answer_is_never_sent_again(rig, job) -> None:
    """ATT-6 ERR-1a: the job was taken and the answer lost: what looks like it is named, and nobody claims it."""
    await rig.script({"drop_after_body": True}, account="glacier")
    clip = job("lost-1", model=H3, prompt="ice", duration_s=4)
    fault = await rig.refusal(rig.submit("glacier", clip))
    assert (fault.code, fault.scope, fault.retryable) == ("submission_unknown", "attempt", False)
    found = await rig.reconcile("glacier", clip, sent_s_ago=60.0)
    assert found.verdict == p.RECONCILE_VERDICT_UNKNOWN
    [taken] = await rig.submissions("glacier")
    assert taken["provider_task_id"] in found.evidence
    assert await rig.posts("glacier") == 1


async def test_a_job_that_never_arrived_is_not_accepted(rig, job) -> None:
    """ATT-6: a complete list without anything like it proves that nothing arrived; the first interface has no list."""
    await rig.script({"drop_after_body": True, "accept": False}, account="glacier")
    clip = job("gone-1", model=H3, prompt="ice", duration_s=4)
    assert (await rig.refusal(rig.submit("glacier", clip))).code == "submission_unknown"
    await rig.submit("glacier", job("other", model=H3, prompt="another", duration_s=9))  # plainly not ours
    late = await rig.reconcile("glacier", clip, sent_s_ago=60.0)
    assert late.verdict == p.RECONCILE_VERDICT_NOT_ACCEPTED
    first = await rig.reconcile("glacier", job(model=HAILUO, prompt="ice"), sent_s_ago=60.0)
    assert first.verdict == p.RECONCILE_VERDICT_UNKNOWN
    assert "keeps no records" in first.evidence


async def test_refusals_under_a_200_keep_their_kind(rig, job) -> None:
    """ERR-1: `base_resp` tells moderation, a likeness, a parameter, a model and a limit apart; none is a job."""
    for given, code in (
        ({"prompt": "[moderated]"}, "content_rejected"),
        ({"prompt": "[real-person]"}, "real_person_rejected"),
        ({"prompt": "x", "duration_s": 99}, "invalid_request"),
        ({"prompt": "x", "model": "MiniMax-H9"}, "model_unavailable"),
    ):
        fault = await rig.refusal(rig.submit("glacier", job(**{"model": H3} | given)))
        assert fault.code == code, given
    await rig.lab("POST", "/accounts/glacier", {"concurrency": 0})
    assert (await rig.refusal(rig.submit("glacier", job(model=H3, prompt="x")))).code == "rate_limited"
    await rig.lab("POST", "/accounts/glacier", {"revoked": True})
    revoked = await rig.refusal(rig.submit("glacier", job(model=H3, prompt="x")))
    assert (revoked.code, revoked.scope) == ("key_invalid", "channel")
    assert await rig.submissions("glacier") == []


async def test_a_job_that_fails_late(rig, job) -> None:
    """ERR-1: the code of a failed task is in the task, by either interface."""
    for model in (H3, HAILUO):
        clip = job(model=model, prompt="[moderated-late] x")
        sent = await rig.submit("glacier", clip)
        answer = await rig.finished("glacier", clip, sent.provider_task_id)
        assert (answer.state, answer.failure.code) == (p.JOB_STATE_FAILED, "content_rejected")


async def test_cancelling(rig, job) -> None:
    """ATT-8: a queued task is cancelled, a running one runs on, and the first interface is not even asked."""
    await rig.lab("POST", "/accounts/glacier", {"queue_s": 30.0})
    clip = job(model=H3, prompt="x", duration_s=4)
    sent = await rig.submit("glacier", clip)
    assert (await rig.cancel("glacier", clip, sent.provider_task_id)).cancelled
    assert (await rig.poll("glacier", clip, sent.provider_task_id)).state == p.JOB_STATE_CANCELLED
    first = job("f", model=HAILUO, prompt="x")
    kept = await rig.submit("glacier", first)
    assert not (await rig.cancel("glacier", first, kept.provider_task_id)).cancelled
    await rig.lab("POST", "/accounts/glacier", {"queue_s": 0.0, "render_s": 30.0})
    running = await rig.submit("glacier", clip)
    await rig.polled("glacier", clip, running.provider_task_id, lambda state: state == p.JOB_STATE_RUNNING)
    assert not (await rig.cancel("glacier", clip, running.provider_task_id)).cancelled


async def test_a_failed_poll_says_nothing_about_the_job(rig, job) -> None:
    """HLT-13: a code under a 200, a 500 and a lost task are faults of the question; the job goes on."""
    clip = job(model=H3, prompt="x", duration_s=4)
    sent = await rig.submit("glacier", clip)
    limited = {"status": 200, "body": {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}}
    await rig.script(limited, {"status": 500}, method="GET")
    for reason in ("rate_limited", "provider_error"):
        fault = await rig.refusal(rig.poll("glacier", clip, sent.provider_task_id))
        assert (fault.code, fault.metadata["reason"]) == ("poll_failed", reason)
    lost = await rig.refusal(rig.poll("glacier", clip, "nobody"))
    assert (lost.code, lost.metadata["reason"]) == ("poll_failed", "task_lost")
    assert (await rig.finished("glacier", clip, sent.provider_task_id)).state == p.JOB_STATE_SUCCEEDED


async def test_materials_reach_the_second_interface(rig, job) -> None:
    """ERR: frames and references travel; frames beside references never leave the house."""
    picture = await rig.submit("ember", job("p", "image", "doubao-seedream-4-0-250828", prompt="ice", size="640x640"))
    frame = {"artifact": picture.result.artifacts[0].sha256}
    sent = await rig.submit("glacier", job(model=H3, prompt="it moves", duration_s=4, first_frame=frame))
    assert sent.provider_task_id
    sent = await rig.submit("glacier", job("r", model=H3, prompt="follow", duration_s=4, reference_images=[frame]))
    assert sent.provider_task_id
    posts = await rig.posts("glacier")
    mixed = job("m", model=H3, prompt="x", first_frame=frame, reference_images=[frame])
    assert (await rig.refusal(rig.submit("glacier", mixed))).code == "validation_failed"
    assert await rig.posts("glacier") == posts
