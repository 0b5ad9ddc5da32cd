"""A film against the studio, through the real service: clips of two makers, a voice, lines, and what comes of them."""

import base64
from pathlib import Path

import pytest

from libs.materials.examining import examine
from pointsman.provider_adapter.v1 import provider_pb2 as p
from tests.support.media import clip, sound


def given(content: bytes, media_type: str) -> dict[str, str]:
    """A material of bytes."""
    return {"base64": base64.b64encode(content).decode(), "media_type": media_type}


CLIPS = [given(clip(seconds), "video/mp4") for seconds in (1.0, 1.5, 1.0)]
OTHER = given(clip(1.0, "webm"), "video/webm")
VOICE = given(sound(0.8), "audio/wav")


@pytest.mark.parametrize("clips, seconds", [(CLIPS, 3.5), ([*CLIPS[:2], OTHER], 3.5)], ids=["alike", "of two makers"])
async def test_three_clips_become_one_film(rig, job, tmp_path: Path, clips: list, seconds: float) -> None:
    """OPS-1: a film is as long as its clips together, with pictures, sound and a track of lines, and is charged so."""
    asked = job(model="joiner-1", clips=clips, narration=[VOICE, None, VOICE], subtitles=["One.", "", "Three."])
    sent = await rig.submit("knoll", asked)
    answer = await rig.finished("knoll", asked, sent.provider_task_id)
    assert answer.state == p.JOB_STATE_SUCCEEDED, answer
    [artifact] = answer.result.artifacts
    path = tmp_path / "film.mp4"
    path.write_bytes(await rig.blobs.read(artifact.sha256))
    film = await examine(path, decoding=True)
    assert (film.streams.video, film.streams.audio, film.streams.subtitles) == ("h264", "aac", 1)
    assert (film.measures.width, film.measures.height) == (128, 72)
    assert film.measures.duration_s == pytest.approx(seconds, abs=0.15)
    assert answer.result.usage["seconds"] == pytest.approx(seconds, abs=0.05)
    [charged] = await rig.submissions("knoll")
    assert charged["charged"] == {"currency": "CNY", "amount": charged["would_charge"]["amount"]}
    assert float(charged["charged"]["amount"]) == pytest.approx(seconds * 0.01, abs=0.001)


async def test_who_joins_no_clips_is_never_asked_to(rig, job) -> None:
    """ERR-1: a dialect without words for clips refuses them here; a model that draws refuses them itself."""
    fault = await rig.refusal(rig.submit("gale", job(model="bytedance/seedance/v2/text-to-video", clips=CLIPS)))
    assert (fault.code, [error.pointer for error in fault.errors]) == ("validation_failed", ["/input/clips"])
    assert await rig.posts("gale") == 0
    fault = await rig.refusal(rig.submit("aurora", job(clips=CLIPS)))
    assert (fault.code, fault.category) == ("invalid_request", "request")
