"""Fetches what a request refers to (`data:` or `http(s):` URLs) into files, before the job is accepted."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import io
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from services.studio.domain.refusals import Reason, Refusal

MOST_BYTES = 64 * 1024 * 1024
FETCH_TIMEOUT_S = 10.0


async def keep(url: str, folder: Path, *, image: bool) -> str:
    """Stores the bytes behind `url` under their digest and gives the file's name.

    Raises Refusal: MATERIAL_UNREACHABLE when they cannot be had, MATERIAL_UNREADABLE when `image` and they are none.
    """
    return await asyncio.to_thread(_keep, url, folder, image)


def _keep(url: str, folder: Path, image: bool) -> str:
    content = _decode(url) if url.startswith("data:") else _fetch(url)
    if image:
        try:
            with Image.open(io.BytesIO(content)) as picture:
                picture.verify()
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
            raise Refusal(Reason.MATERIAL_UNREADABLE, "The specified asset is not an image.", "image_url") from error
    name = hashlib.sha256(content).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    if not path.exists():
        part = path.with_suffix(".part")
        part.write_bytes(content)
        part.replace(path)
    return name


def _decode(url: str) -> bytes:
    head, comma, payload = url[5:].partition(",")
    try:
        if not comma:
            raise ValueError("no comma")
        if head.endswith(";base64"):
            return base64.b64decode(payload, validate=True)
        return urllib.parse.unquote_to_bytes(payload)
    except (ValueError, binascii.Error) as error:
        raise Refusal(Reason.MATERIAL_UNREADABLE, "The data URL cannot be decoded.", "image_url") from error


def _fetch(url: str) -> bytes:
    if not url.startswith(("http://", "https://")):
        raise Refusal(Reason.MATERIAL_UNREADABLE, "The asset is neither a data URL nor an http URL.", "image_url")
    try:
        with urllib.request.urlopen(url, timeout=FETCH_TIMEOUT_S) as answer:
            content: bytes = answer.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # the error is the answer, connection included
        raise Refusal(
            Reason.MATERIAL_UNREACHABLE, "The image could not be downloaded from the provided URL.", "image_url"
        ) from error
    if len(content) > MOST_BYTES:
        raise Refusal(Reason.MATERIAL_UNREADABLE, "The asset exceeds the limit of 64 MB.", "image_url")
    return content
