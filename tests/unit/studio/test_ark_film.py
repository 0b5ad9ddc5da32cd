"""A film in the Ark dialect: what the joiner reads, and what it refuses."""

from pathlib import Path

import pytest

from services.studio.dialects import ark
from services.studio.domain.jobs import Film, Line, VideoJob, Voice
from services.studio.domain.prices import video_charge, video_tokens
from services.studio.domain.refusals import Reason, Refusal
from services.studio.media.films import Part, frame, length, lines_of
from services.studio.settings import StudioConfig

JOINER = StudioConfig.default().accounts["knoll"].models["joiner-1"]
CLIP = {"type": "video_url", "video_url": {"url": "http://x/1.mp4"}, "role": "clip"}
VOICE = {"type": "audio_url", "audio_url": {"url": "http://x/1.mp3"}, "role": "narration"}
LINE = {"type": "text", "text": "One.", "role": "subtitle"}


def part(seconds: float, width: int = 640, height: int = 360) -> Part:
    return Part(Path("clip"), seconds, "h264", width, height, 12.0, sound=True)


def test_parts_keep_their_order_and_their_clips():
    """Clips stand in the order of the items; a voice or a line names its clip, or lies over the whole film."""
    spans = [{**LINE, "clip": 1}, {**LINE, "start_s": 0, "end_s": 1.5}]
    job = ark.read_video({"content": [CLIP, CLIP, {**VOICE, "clip": 1}, *spans]}, JOINER)
    assert job.film == Film(
        ("http://x/1.mp4", "http://x/1.mp4"),
        (Voice("http://x/1.mp3", 1),),
        (Line("One.", 1), Line("One.", start_s=0.0, end_s=1.5)),
    )


@pytest.mark.parametrize(
    "content",
    [
        [VOICE],
        [CLIP] * 65,
        [CLIP, {"type": "text", "text": "a storm"}],
        [CLIP, {**CLIP, "type": "image_url"}],
        [CLIP, {**VOICE, "clip": 1}],
        [CLIP, VOICE, VOICE],
        [CLIP, VOICE, {**VOICE, "clip": 0}],
        [CLIP, {**VOICE, "clip": True}],
        [CLIP, LINE],
        [CLIP, {**LINE, "start_s": 2, "end_s": 1}],
        [CLIP, {**LINE, "clip": 0, "text": " "}],
        ["clip"],
    ],
)
def test_parts_that_do_not_fit_are_refused(content):
    """A part that would be left out, or that has no place, is the caller's mistake."""
    with pytest.raises(Refusal) as caught:
        ark.read_video({"content": content}, JOINER)
    assert caught.value.reason in (Reason.PARAMETER_INVALID, Reason.PARAMETER_MISSING)


def test_a_film_is_charged_by_its_own_seconds():
    """3.5 s cost 3.5 seconds; no tokens are counted, for no model drew anything."""
    job = VideoJob("", 4, "360p", "16:9", 0, film=Film(("a",), duration_s=3.5))
    assert (str(video_charge(JOINER.price, job)), video_tokens(job)) == ("0.0350", 0)


def test_a_film_has_the_size_of_most_clips():
    """One clip of another shape does not decide; the first decides among equals; sides are even."""
    assert frame([part(1, 1280, 720), part(1), part(1)]) == (640, 360)
    assert frame([part(1, 641, 361), part(1)]) == (640, 360)
    assert length([part(1.25), part(2.5)]) == 3.75


def test_lines_follow_their_clips_and_never_outlast_the_film():
    """A line of a clip has the clip's time; one with times is cut at the end; marks of the format are defused."""
    told = lines_of(
        [Line("Two <i>now</i>\n\n--> {x}", 1), Line("One.", 0), Line("End.", start_s=3.5, end_s=9.0)],
        [part(1.5), part(2.25)],
    )
    assert told == (
        "1\n00:00:00,000 --> 00:00:01,500\nOne.\n\n"
        "2\n00:00:01,500 --> 00:00:03,750\nTwo ‹i>now‹/i>\n→ (x}\n\n"
        "3\n00:00:03,500 --> 00:00:03,750\nEnd.\n"
    )
