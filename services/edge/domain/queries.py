"""What a query string or a header may say: sizes of pages, cursors, times."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from libs.faults.fault import Fault
from libs.kernel.figures import plain
from services.edge.domain.json_values import NAMED_ERRORS, pointer_to

DEFAULT_PAGE = 100
LARGEST_PAGE = 1000
LONGEST_KEY = 255
LONGEST_NAME = 100
RUN_STATUSES = (
    "pending", "running", "paused", "succeeded", "failed", "timed_out", "cancelled", "dead_letter",
)  # fmt: skip
CALL_ENDS = ("succeeded", "failed", "abandoned")
VISIBLE = re.compile(r"[!-~]+")


def faults(given: Iterable[tuple[str, str]], known: Mapping[str, bool]) -> list[tuple[str, str]]:
    """(pointer, reason) of every parameter that is misspelt, given twice, or holds a NUL character.

    `known`: the names that there are -> whether they may be given more than once.
    """
    names = f"known are {', '.join(known)}" if known else "there are none here"
    found: dict[str, str] = {}
    seen: set[str] = set()
    for name, value in given:
        pointer = pointer_to("/query", name[:LONGEST_NAME])
        if name not in known:
            found[pointer] = f"is not a known parameter; {names}"
        elif name in seen and not known[name]:
            found[pointer] = "is given more than once; give it once"
        elif "\x00" in value:
            found[pointer] = "holds a NUL character"
        seen.add(name)
    return list(found.items())[:NAMED_ERRORS]


def page_size(text: str | None, name: str = "page_size") -> int:
    """1..1000, default 100. Fault validation_failed, also for a fraction."""
    if text is None or text == "":
        return DEFAULT_PAGE
    size = int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else 0
    if not 1 <= size <= LARGEST_PAGE:
        raise Fault.invalid((f"/query/{name}", f"must be a whole number between 1 and {LARGEST_PAGE}"))
    return size


def number(text: str | None, name: str, default: float, least: float, most: float) -> float:
    """A number within bounds. Fault validation_failed with the pointer `/query/NAME`."""
    if text is None or text == "":
        return default
    value = float(text) if re.fullmatch(r"\d{1,15}(\.\d{1,9})?", text, re.ASCII) else least - 1
    if not least <= value <= most:
        raise Fault.invalid((f"/query/{name}", f"must be a number between {plain(least)} and {plain(most)}"))
    return value


def flag(text: str | None, name: str) -> bool:
    """`true` or `1`, `false` or `0`; false where nothing is said."""
    if text in (None, "", "0", "false"):
        return False
    if text in ("1", "true"):
        return True
    raise Fault.invalid((f"/query/{name}", "must be true or false"))


def moment(text: str | None, name: str) -> datetime | None:
    """An RFC 3339 time with its offset; None where nothing is said."""
    if text is None or text == "":
        return None
    value = instant(text)
    if value is None:
        raise Fault.invalid((f"/query/{name}", "must be a time such as 2026-01-31T09:30:00Z"))
    return value


def instant(text: str) -> datetime | None:
    """An RFC 3339 time with its offset, in UTC; None for any other text, and for a time outside the years 1 to 9999."""
    try:
        value = datetime.fromisoformat(text)
        return value.astimezone(UTC) if value.tzinfo is not None else None
    except (ValueError, OverflowError):  # the offset may lead out of the calendar
        return None


def cursor(text: str | None, name: str) -> int:
    """The sequence after which events are wanted, 0 where nothing is said. Fault malformed_request (SSE-5)."""
    if text is None or text == "":
        return 0
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise Fault.of("malformed_request", f"{name} must be the sequence of an event, a whole number from 0")
    return int(text)


def statuses(texts: Iterable[str]) -> tuple[str, ...]:
    """Run states, repeated or separated by commas."""
    return words(texts, "status", RUN_STATUSES)


def words(texts: Iterable[str], name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Some of the known words, repeated or separated by commas. Fault validation_failed."""
    said = tuple(word for text in texts for word in text.split(",") if word)
    if any(word not in known for word in said):
        raise Fault.invalid((f"/query/{name}", f"must be one of {', '.join(known)}"))
    return said


def idempotency_key(text: str | None) -> str:
    """The key, "" where there is none. Fault malformed_request for one that cannot be kept."""
    if text is None:
        return ""
    if not fits_key(text):
        raise Fault.of("malformed_request", f"Idempotency-Key must be 1 to {LONGEST_KEY} visible ASCII characters")
    return text


def fits_key(text: str) -> bool:
    """Whether it can be an idempotency key."""
    return len(text) <= LONGEST_KEY and VISIBLE.fullmatch(text) is not None
