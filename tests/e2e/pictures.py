"""Small materials of every sort, as a caller would send them."""

import base64
import io
import wave
from typing import Any

from PIL import Image


def picture(number: int) -> dict[str, Any]:
    """A small PNG in a colour of its own."""
    file = io.BytesIO()
    Image.new("RGB", (320, 180), (number * 25 % 256, 90, 160)).save(file, "PNG")
    return _encoded(file.getvalue(), "image/png")


def sound(number: int) -> dict[str, Any]:
    """A tenth of a second of silence, each of another length."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes(b"\0\0" * (800 + number))
    return _encoded(file.getvalue(), "audio/wav")


def _encoded(content: bytes, media_type: str) -> dict[str, Any]:
    return {"base64": base64.b64encode(content).decode(), "media_type": media_type}
