"""What a finished work holds: streams and measures, told from real files made on the spot."""

import subprocess
from pathlib import Path

import imageio_ffmpeg
import pytest
from PIL import Image

from libs.materials.examining import Streams, examine
from libs.materials.probing import Unreadable

PICTURES = ("-f", "lavfi", "-i", "testsrc=s=64x36:r=12:d=1.5")
SOUND = ("-f", "lavfi", "-i", "sine=d=1.5")
MPEG4 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")


def made(path: Path, *arguments: str) -> Path:
    """A file by the bundled ffmpeg."""
    subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-y", *arguments, str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film of 1.5 s with sound and one track of lines."""
    folder = tmp_path_factory.mktemp("film")
    lines = folder / "lines.srt"
    lines.write_text("1\n00:00:00,000 --> 00:00:01,000\nHere.\n")
    return made(
        folder / "film.mp4", *PICTURES, *SOUND, "-i", str(lines), *MPEG4, "-c:a", "aac", "-c:s", "mov_text", "-t", "1.5"
    )


async def test_a_film_tells_its_streams_and_its_length(film: Path) -> None:
    """Codecs, tracks of lines, frames a second, pixels and seconds are those of the file, decoded or not."""
    for decoding in (False, True):
        seen = await examine(film, decoding=decoding)
        assert seen.streams == Streams("h264", "aac", 1, 12.0)
        assert (seen.measures.media_type, seen.measures.width, seen.measures.height) == ("video/mp4", 64, 36)
        assert seen.measures.duration_s == pytest.approx(1.5, abs=0.03)


async def test_what_is_not_there_is_told_as_absent(tmp_path: Path) -> None:
    """A silent clip has no sound, a voice no pictures, a picture no streams at all: nothing is made up."""
    silent = await examine(made(tmp_path / "silent.mp4", *PICTURES, *MPEG4))
    assert (silent.streams.audio, silent.streams.subtitles) == ("", 0)
    assert silent.measures.duration_s == pytest.approx(1.5, abs=0.03)
    voice = await examine(made(tmp_path / "voice.wav", *SOUND))
    assert (voice.streams.video, voice.measures.width) == ("", 0)
    Image.new("RGB", (30, 20)).save(tmp_path / "plain.png")
    picture = await examine(tmp_path / "plain.png")
    assert (picture.streams, picture.measures.width, picture.measures.height) == (Streams(), 30, 20)


async def test_decoding_finds_what_reading_does_not(film: Path, tmp_path: Path) -> None:
    """A film whose frames are damaged keeps its head: only decoding refuses it, and with a reason."""
    content = bytearray(film.read_bytes())
    start = content.index(b"mdat") + 4
    for place in range(start + 40, start + 3000, 5):
        content[place] ^= 0x5A
    damaged = tmp_path / "damaged.mp4"
    damaged.write_bytes(content)
    assert (await examine(damaged)).streams.video == "h264"
    with pytest.raises(Unreadable, match="broken"):
        await examine(damaged, decoding=True)


@pytest.mark.parametrize("content", [b"", b"#EXTM3U\nfile:///etc/hostname\n", b"<html>no film</html>"])
async def test_what_is_no_medium_is_unreadable(content: bytes, tmp_path: Path) -> None:
    """Nothing, a playlist and a page are refused before any tool reads them."""
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(Unreadable):
        await examine(path)
