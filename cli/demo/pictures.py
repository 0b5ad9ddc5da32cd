"""The contact sheet: one frame of every clip on one picture, with who made it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import imageio_ffmpeg
from PIL import Image, ImageDraw, ImageFont

TILE = (320, 180)
CAPTION = 24
COLUMNS = 6
MARGIN = 8
BACKGROUND = "#14161a"


async def frame_of(clip: Path, target: Path) -> Path | None:
    """The frame at one second as a picture; None where the clip does not decode."""
    command = (imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-y", "-ss", "1", "-i", str(clip))
    process = await asyncio.create_subprocess_exec(
        *command, "-frames:v", "1", str(target), stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    return target if await process.wait() == 0 and target.exists() else None


def contact_sheet(frames: Sequence[tuple[Path, str]], target: Path) -> Path:
    """Draw all frames with their captions onto one picture."""
    rows = -(-len(frames) // COLUMNS)
    width = COLUMNS * (TILE[0] + MARGIN) + MARGIN
    height = rows * (TILE[1] + CAPTION + MARGIN) + MARGIN
    sheet = Image.new("RGB", (width, height), BACKGROUND)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=15)
    for number, (path, caption) in enumerate(frames):
        row, column = divmod(number, COLUMNS)
        left, top = MARGIN + column * (TILE[0] + MARGIN), MARGIN + row * (TILE[1] + CAPTION + MARGIN)
        with Image.open(path) as frame:
            sheet.paste(frame.convert("RGB").resize(TILE), (left, top))
        draw.text((left + 2, top + TILE[1] + 3), caption, fill="#e8e8e8", font=font)
    sheet.save(target)
    return target
