"""What people write behind flags: JSON or a file with it, and NAME=VALUE."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cli import output

AMOUNT = re.compile(r"[A-Z]{3}:[0-9]{1,12}(\.[0-9]{1,9})?")
EXTENSIONS = {
    "video/mp4": ".mp4",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
}


def read_input(given: str, flag: str = "--input") -> Any:
    """The value behind a flag: JSON, or @FILE with JSON in it."""
    text = given
    if given.startswith("@"):
        try:
            text = Path(given[1:]).read_text(encoding="utf-8")
        except OSError as error:
            output.fail(f"{flag}: {given[1:]} cannot be read: {error.strerror}", output.WRONG_USE)
        except UnicodeDecodeError:
            output.fail(f"{flag}: {given[1:]} is no text in UTF-8", output.WRONG_USE)
    try:
        return json.loads(text)
    except ValueError as error:
        output.fail(
            f"{flag} is no JSON: {error}", output.WRONG_USE, f"""write it like {flag} '{{"prompt": "a lake"}}'"""
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


def amount(given: str, flag: str) -> dict[str, str]:
    """CNY:250.00 as `{"currency", "amount"}`."""
    currency, _, number = given.partition(":")
    if not AMOUNT.fullmatch(given):
        output.fail(f"{flag}: {given!r} is no amount", output.WRONG_USE, f"write it like {flag} CNY:250.00")
    return {"currency": currency, "amount": number}
