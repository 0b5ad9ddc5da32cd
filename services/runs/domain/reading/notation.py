"""How single values are written: amounts, durations, sizes, digests, times. What is none of these is read as None."""

import re
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
LONGEST = timedelta(days=366)
NODE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
CURRENCY = re.compile(r"[A-Z]{3}")
DIGEST = re.compile(r"[0-9a-f]{64}")
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s?([smhd]?)", re.ASCII)
_SIZE = re.compile(r"(\d{1,6})x(\d{1,6})", re.ASCII)


def is_number(value: Any) -> bool:
    """Whether it is a finite number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15


def amount_of(value: Any) -> Decimal | None:
    """An exact amount of at least 0, below 1e12 and with at most 9 decimals: a text or a number."""
    if not isinstance(value, str) and not is_number(value):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    if not amount.is_finite() or not 0 <= amount < Decimal("1e12"):
        return None
    return amount if amount == amount.quantize(Decimal("1e-9")) else None


def duration_of(value: Any) -> timedelta | None:
    """`90s`, `30m`, `4h`, `2d`, `1.5h`, or seconds as a number; above 0 and at most 366 days."""
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip())
        seconds = float(found[1]) * UNITS[found[2] or "s"] if found else 0.0
    else:
        seconds = float(value) if is_number(value) else 0.0
    return timedelta(seconds=seconds) if 0 < seconds <= LONGEST.total_seconds() else None


def size_of(value: Any) -> tuple[int, int] | None:
    """`1280x720` as (width, height), both above 0."""
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    return (int(found[1]), int(found[2])) if found and int(found[1]) and int(found[2]) else None


def moment_of(value: Any) -> datetime | None:
    """A time with its zone in RFC 3339, `2027-01-31T18:00:00Z`."""
    if not isinstance(value, str) or "T" not in value:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
