"""What people write behind flags: JSON or a file with it, and NAME=VALUE."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cli import output

EXTENSIONS = {
    "video/mp4": ".mp4",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
}


def read_input(given: str) -> Any:
    """The value of `--input`: JSON, or @FILE with JSON in it."""
    text = given
    if given.startswith("@"):
        try:
            text = Path(given[1:]).read_text(encoding="utf-8")
        except OSError as error:
            output.fail(f"--input: {given[1:]} cannot be read: {error.strerror}", output.WRONG_USE)
        except UnicodeDecodeError:
            output.fail(f"--input: {given[1:]} is no text in UTF-8", output.WRONG_USE)
    try:
        return json.loads(text)
    except ValueError as error:
        output.fail(
            f"--input is no JSON: {error}", output.WRONG_USE, """write it like --input '{"prompt": "a lake"}'"""
        )


def pairs(given: Iterable[str], text: bool = False) -> dict[str, Any]:
    """NAME=VALUE as a mapping; values are JSON where they can be, and always texts with `text`."""
    found = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            output.fail(f"{item!r} is not NAME=VALUE", output.WRONG_USE)
        found[name] = value if text else _value(value)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
