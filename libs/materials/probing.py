"""What a picture, clip or sound measures: pictures by Pillow, what has a duration by the bundled ffmpeg.

Laws of this file:
- the reader is chosen by what the bytes are, never by a name, and reads that one file: no playlist is followed;
- a tool has bounded time, and is killed with its caller;
- whatever a tool makes of bytes that it cannot read is one answer: Unreadable.
"""

import asyncio
import re
from functools import cache
from pathlib import Path

import imageio_ffmpeg
from PIL import Image

from libs.materials.limits import Measures

PROBE_S, DECODE_S = 20.0, 120.0
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
# Type -> the one demuxer that may read it.
READERS = {
    "video/mp4": "mov",
    "video/quicktime": "mov",
    "video/webm": "matroska",
    "audio/mp4": "mov",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/aac": "aac",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
}
STREAM = re.compile(r"^  Stream #\d+:\d+[^:]*: (Video|Audio|Subtitle): ([^\n]*)", re.MULTILINE)
"""A stream of the file that is read, in ffmpeg's words; what it writes stands behind `Output #`."""
_SIDES = re.compile(r"\b(\d{1,6})x(\d{1,6})\b")
_TIME = re.compile(r"out_time_us=(\d+)")


class Unreadable(Exception):
    """The bytes cannot be read as what they claim to be. The text is the reason."""


async def probe(path: Path, media_type: str, family: str, most_pixels: int) -> Measures:
    """Measure a file that begins as `media_type` does. Unreadable; a picture beyond `most_pixels` is not decoded."""
    size = path.stat().st_size
    if family == "image":
        width, height = await asyncio.to_thread(picture_size, path, most_pixels)
        return Measures(media_type, size, width, height)
    return await _clip(path, media_type, family, size)


def picture_size(path: Path, most_pixels: int) -> tuple[int, int]:
    """(width, height) of a picture that was decoded, but for one beyond `most_pixels`. Unreadable."""
    try:
        with Image.open(path, formats=FORMATS) as picture:
            width, height = picture.size
            if width * height <= most_pixels:
                picture.load()
            return width, height
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise Unreadable("has far more pixels than are accepted") from error
    except (OSError, SyntaxError, ValueError, EOFError, KeyError, IndexError) as error:
        raise Unreadable("is a broken picture") from error


async def _clip(path: Path, media_type: str, family: str, size: int) -> Measures:
    told, progress = await read_packets(path, READERS.get(media_type, ""))
    streams = dict(reversed(STREAM.findall(told)))
    wanted = "Video" if family == "video" else "Audio"
    times = _TIME.findall(progress)
    if wanted not in streams or not times:
        raise Unreadable(f"holds no {family} that can be read")
    seconds = int(times[-1]) / 1e6
    sides = _SIDES.search(streams["Video"]) if family == "video" else None
    if family == "video" and sides is None:
        raise Unreadable("holds no video that can be read")
    width, height = (int(sides[1]), int(sides[2])) if sides else (0, 0)
    return Measures(media_type, size, width, height, seconds)


async def read_packets(path: Path, reader: str, decoding: bool = False) -> tuple[str, str]:
    """(what ffmpeg says of the file, how far it came): every packet is read, and decoded where it is to be; nothing is
    written. Unreadable, also for the first frame that cannot be decoded."""
    if not reader:
        raise Unreadable("is of a type that cannot be measured")
    most_s = DECODE_S if decoding else PROBE_S
    strictly = ("-xerror", "-err_detect", "explode") if decoding else ()
    process = await asyncio.create_subprocess_exec(
        _executable(), "-nostdin", "-hide_banner", "-nostats", "-loglevel", "info", "-progress", "pipe:1",
        *strictly, "-protocol_whitelist", "file", "-f", reader, "-i", f"file:{path}",
        "-map", "0:v?", "-map", "0:a?", *(() if decoding else ("-c", "copy")), "-f", "null", "-",
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(most_s):
            progress, told = await process.communicate()
    except TimeoutError:
        raise Unreadable(f"cannot be {'decoded' if decoding else 'measured'} within {most_s:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise Unreadable("is broken or incomplete")
    return told.decode(errors="replace"), progress.decode(errors="replace")


@cache
def _executable() -> str:
    path: str = imageio_ffmpeg.get_ffmpeg_exe()
    return path
