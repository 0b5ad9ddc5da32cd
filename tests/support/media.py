"""Small real media for tests."""

import io
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import imageio_ffmpeg
from PIL import Image


@cache
def picture(width: int = 64, height: int = 36, form: str = "PNG", colour: int = 120) -> bytes:
    """A picture of one colour."""
    content = io.BytesIO()
    Image.new("RGB", (width, height), (colour, 80, 40)).save(content, form)
    return content.getvalue()


@cache
def clip(seconds: float = 1.0, suffix: str = "mp4") -> bytes:
    """A clip of a test card."""
    return _made(f"testsrc=size=128x72:rate=10:duration={seconds}", suffix, "-pix_fmt", "yuv420p")


@cache
def sound(seconds: float = 1.0, suffix: str = "wav") -> bytes:
    """A tone."""
    return _made(f"sine=frequency=440:duration={seconds}", suffix)


def _made(source: str, suffix: str, *more: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"made.{suffix}"
        tool = imageio_ffmpeg.get_ffmpeg_exe()
        command = [tool, "-nostdin", "-v", "error", "-f", "lavfi", "-i", source, *more, str(path)]
        subprocess.run(command, check=True, timeout=60)
        return path.read_bytes()
