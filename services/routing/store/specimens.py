"""The media of regression sets, in libs/blobs."""

import asyncio
import io
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from libs.blobs.blob import Blobs
from libs.blobs.disk import on_disk
from libs.materials.examining import examine
from libs.materials.limits import Measures
from libs.materials.probing import Unreadable

SIDES = (1280, 720)


class BlobSpecimens:
    """Implements `ports.Specimens`."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def picture(self, words: str = "") -> str:
        """See the port."""
        drawn = await asyncio.to_thread(_sign, words) if words else await asyncio.to_thread(_picture)
        blob = await self._blobs.put(drawn, "image/png")
        return blob.sha256

    async def measures(self, sha256: str) -> Measures | str:
        """See the port."""
        with tempfile.TemporaryDirectory(prefix="pointsman-specimen-") as folder:
            path = Path(folder) / "specimen"
            with path.open("xb") as file:
                async for chunk in self._blobs.open(sha256):
                    await on_disk(file.write, chunk)
            try:
                return (await examine(path)).measures
            except Unreadable as error:
                return str(error)


def _picture() -> bytes:
    """A red kite over a flat sea: nothing that any moderation could mind, and never another picture."""
    canvas = Image.new("RGB", SIDES, (190, 215, 235))
    draw = ImageDraw.Draw(canvas)
    draw.rectangle((0, 480, *SIDES), fill=(60, 110, 150))
    draw.polygon([(640, 120), (720, 240), (640, 360), (560, 240)], fill=(200, 50, 40))
    draw.line([(640, 360), (610, 470)], fill=(90, 90, 90), width=3)
    return _encoded(canvas)


def _sign(words: str) -> bytes:
    """Black words on white, as large as any reader needs them."""
    canvas = Image.new("RGB", (1024, 256), "white")
    ImageDraw.Draw(canvas).text((64, 72), words, fill="black", font=ImageFont.load_default(96))
    return _encoded(canvas)


def _encoded(canvas: Image.Image) -> bytes:
    content = io.BytesIO()
    canvas.save(content, "PNG")
    return content.getvalue()
