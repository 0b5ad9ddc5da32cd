"""Films by the real ffmpeg: what is seen and heard at which second."""

import array
import subprocess
from pathlib import Path

import pytest

from services.studio.domain.jobs import Film, Line, Voice
from services.studio.media import films
from services.studio.media.ffmpeg import RenderError, executable

COLOURS = {"red": (255, 0, 0), "green": (0, 128, 0), "blue": (0, 0, 255)}
SECONDS = {"red": 1.0, "green": 1.5, "blue": 1.0}


def ffmpeg(*arguments: str) -> bytes:
    """What the tool writes to its output."""
    return subprocess.run([executable(), "-nostdin", "-v", "error", *arguments], check=True, capture_output=True).stdout


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Silent clips, one of each colour; `wide` is another maker's, and the voice lasts 2 s."""
    folder = tmp_path_factory.mktemp("studio") / "inputs"
    folder.mkdir()
    for name, seconds in SECONDS.items():
        card = f"color={name}:s=128x72:r=10:d={seconds}"
        ffmpeg("-f", "lavfi", "-i", card, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-f", "mp4", str(folder / name))
    wide = ("-f", "lavfi", "-i", "color=blue:s=160x72:r=25:d=1", "-c:v", "libvpx", "-f", "webm")
    ffmpeg(*wide, str(folder / "wide"))
    ffmpeg("-f", "lavfi", "-i", "sine=f=500:d=2", "-f", "wav", str(folder / "voice"))
    (folder / "words").write_text("no clip")
    return folder


def colour_at(film: Path, second: float) -> str:
    """The colour in the middle of the picture that is shown then."""
    options = ("-ss", str(second), "-i", str(film), "-frames:v", "1", "-vf", "crop=8:8,scale=1:1")
    seen = ffmpeg(*options, "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
    return min(COLOURS, key=lambda name: sum(abs(a - b) for a, b in zip(COLOURS[name], seen, strict=True)))


def loudness(film: Path, start: float, end: float) -> float:
    """Mean of the samples between two seconds, 0 to 32767."""
    content = ffmpeg("-i", str(film), "-map", "0:a", "-ac", "1", "-ar", "8000", "-f", "s16le", "-")
    samples = array.array("h", content)[round(start * 8000) : round(end * 8000)]
    return sum(map(abs, samples)) / len(samples)


@pytest.mark.parametrize("last, copied", [("blue", True), ("wide", False)])
async def test_each_clip_stands_at_its_second(inputs: Path, tmp_path: Path, last: str, copied: bool) -> None:
    """OPS-1: every clip is shown from where the one before it ends, copied or drawn once more, whatever its make."""
    film = Film(("red", "green", last, "red"))
    parts = await films.survey([inputs / name for name in film.clips])
    assert (films.alike(parts), films.length(parts)) == (copied, 4.5)
    await films.make(film, inputs, tmp_path / "film.mp4")
    shown = [colour_at(tmp_path / "film.mp4", second) for second in (0.2, 0.8, 1.2, 2.2, 2.8, 3.2, 3.8, 4.2)]
    assert shown == ["red", "red", "green", "green", "blue", "blue", "red", "red"]


async def test_a_voice_is_heard_with_its_clip_alone(inputs: Path, tmp_path: Path) -> None:
    """OPS-1: a voice of 2 s over a clip of 1.5 s ends with it; a single one lies over the whole film."""
    target = tmp_path / "film.mp4"
    await films.make(Film(("red", "green", "blue"), (Voice("voice", 1),)), inputs, target)
    assert loudness(target, 0.05, 0.9) < 20
    assert loudness(target, 1.1, 2.4) > 500
    assert loudness(target, 2.6, 3.4) < 20
    await films.make(Film(("red", "green", "blue"), (Voice("voice"),)), inputs, target)
    assert loudness(target, 0.1, 1.9) > 500
    assert loudness(target, 2.1, 3.4) < 20


async def test_lines_are_read_with_their_clips(inputs: Path, tmp_path: Path) -> None:
    """OPS-1: the track of lines tells each one while its clip is shown."""
    target = tmp_path / "film.mp4"
    await films.make(Film(("red", "green"), (), (Line("Two.", 1), Line("One.", 0))), inputs, target)
    told = ffmpeg("-i", str(target), "-map", "0:s", "-f", "srt", "-").decode().split()
    assert told == [
        "1",
        "00:00:00,000",
        "-->",
        "00:00:01,000",
        "One.",
        "2",
        "00:00:01,000",
        "-->",
        "00:00:02,500",
        "Two.",
    ]


async def test_what_is_no_clip_is_told_by_its_place(inputs: Path) -> None:
    """A part that cannot be read is named by its number, not guessed at."""
    with pytest.raises(RenderError, match="file 2 of 2"):
        await films.survey([inputs / "red", inputs / "words"])
