"""Pictures and speech in the OpenAI dialect against the studio, through the real service."""

import base64

from pointsman.provider_adapter.v1 import provider_pb2 as p

PICTURE, VOICE = "gpt-image-1", "gpt-4o-mini-tts"


async def test_a_picture(rig, job) -> None:
    """SYN-1: the picture is in the answer to the submission, stored, with the provider's usage."""
    sent = await rig.submit("dahlia", job("p", "image", PICTURE, prompt="a petal", size="512x512", n=1, seed=5))
    [artifact] = sent.result.artifacts
    assert artifact.media_type == "image/png"
    assert sent.result.usage["output_tokens"] > 0
    assert await rig.posts("dahlia") == 1


async def test_a_picture_after_a_reference(rig, job) -> None:
    """ERR: reference pictures take the dialect's way for edits, as URLs or as bytes that were given inline."""
    first = await rig.submit("dahlia", job("p", "image", PICTURE, prompt="a petal", size="512x512"))
    data = await rig.blobs.read(first.result.artifacts[0].sha256)
    inline = {"base64": base64.b64encode(data).decode(), "media_type": "image/png"}
    edit = job("e", "image", PICTURE, prompt="bluer", size="512x512", reference_images=[inline])
    assert len((await rig.submit("dahlia", edit)).result.artifacts) == 1


async def test_speech(rig, job) -> None:
    """SYN-1: sound comes as the body of the answer."""
    sent = await rig.submit("dahlia", job("s", "speech", VOICE, text="The train leaves at nine.", voice="nova"))
    [artifact] = sent.result.artifacts
    assert artifact.media_type == "audio/mpeg"
    assert sent.result.usage["characters"] == 25


async def test_the_format_and_the_pace_of_speech(rig, job) -> None:
    """SYN-1: the sound is packed as asked for and said at the pace asked for; a format that the provider does not make
    is its refusal."""
    said = "The train leaves at nine from the platform behind the hall."
    sizes = []
    for speed in (1, 2.5):
        asked = job(f"s{speed}", "speech", VOICE, text=said, format="wav", speed=speed)
        [artifact] = (await rig.submit("dahlia", asked)).result.artifacts
        assert artifact.media_type == "audio/wav"
        sizes.append(artifact.size_bytes)
    assert sizes[1] < sizes[0]
    fault = await rig.refusal(rig.submit("dahlia", job("s", "speech", VOICE, text="x", format="flac")))
    assert (fault.code, "wav and mp3" in fault.provider_message) == ("invalid_request", True)


async def test_refusals(rig, job) -> None:
    """ERR-1: moderation, a voice that is not there, a missing prompt that never leaves the house."""
    moderated = await rig.refusal(rig.submit("dahlia", job("p", "image", PICTURE, prompt="[moderated]")))
    assert (moderated.code, moderated.provider_code) == ("content_rejected", "moderation_blocked")
    voice = await rig.refusal(rig.submit("dahlia", job("s", "speech", VOICE, text="x", voice="nobody")))
    assert voice.code == "invalid_request"
    posts = await rig.posts("dahlia")
    empty = await rig.refusal(rig.submit("dahlia", job("p", "image", PICTURE)))
    assert (empty.code, empty.errors[0].pointer) == ("validation_failed", "/input/prompt")
    assert await rig.posts("dahlia") == posts


async def test_an_unanswered_picture_cannot_be_reconciled(rig, job) -> None:
    """ATT-6: a dialect without records answers UNKNOWN, never NOT_ACCEPTED; a cut answer is as unknown as none."""
    picture = job("p", "image", PICTURE, prompt="a petal", size="512x512")
    for step in ({"drop_after_body": True}, {"truncate": True}):
        await rig.script(step, account="dahlia")
        fault = await rig.refusal(rig.submit("dahlia", picture))
        assert (fault.code, fault.retryable) == ("submission_unknown", False)
    verdict = await rig.reconcile("dahlia", picture, sent_s_ago=3600)
    assert verdict.verdict == p.RECONCILE_VERDICT_UNKNOWN
    assert await rig.posts("dahlia") == 2
