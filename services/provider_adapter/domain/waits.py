"""How long a provider asks us to wait, from the headers, fields and words of its reply."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_MS = 24 * 3600 * 1000

_UNITS_MS = {"ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_AHEAD = r"(?:try again in|retry (?:after|in)|resets? in|wait)\D{0,4}"
_IN_SPANS = re.compile(_AHEAD + r"((?:\d+(?:\.\d+)?(?:ms|s|m|h|d)){2,})")
_IN_WORDS = re.compile(_AHEAD + r"(\d+(?:\.\d+)?)\s*(ms|milliseconds|s|seconds?|m|minutes?|h|hours?)\b")


def retry_after_ms(headers: Mapping[str, str], now: datetime, text: str = "", told: str = "") -> int | None:
    """Milliseconds to wait, at most a day; None when the reply does not say.

    In order: `retry-after-ms`, `retry-after` (seconds or an HTTP date), the longest `x-ratelimit-reset*` of a window
    that is used up, `told` by a field of the body ("34.4s", "7" seconds), words ("try again in 1.4s").
    """
    told_ms = _moment(told, now) if told else None
    for found in (_milliseconds(headers), _retry_after(headers, now), _resets(headers, now), told_ms, _words(text)):
        if found is not None:
            return int(min(max(found, 0), LONGEST_MS))
    return None


def _milliseconds(headers: Mapping[str, str]) -> float | None:
    return _float(headers.get("retry-after-ms", ""))


def _retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    seconds = _float(value)
    if seconds is not None:
        return seconds * 1000
    try:
        when = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError):
        return None
    return _until(when, now)


def _resets(headers: Mapping[str, str], now: datetime) -> float | None:
    """The longest reset among windows with nothing left; among all windows when none says what is left."""
    exhausted: list[float] = []
    others: list[float] = []
    for name, value in headers.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        wait = _moment(value, now)
        if wait is None:
            continue
        left = _float(headers.get(name.replace("reset", "remaining"), ""))
        (exhausted if left is not None and left <= 0 else others if left is None else []).append(wait)
    return max(exhausted, default=None) if exhausted else max(others, default=None)


def _moment(value: str, now: datetime) -> float | None:
    """A reset: a span ("1m3.5s", "340ms"), seconds, seconds or milliseconds since the epoch, or an RFC 3339 time."""
    value = value.strip()
    if value and not _SPAN.sub("", value):
        return _spanned(value)
    number = _float(value)
    if number is not None:
        if number > 1e12:
            return number - now.timestamp() * 1000
        return (number - now.timestamp()) * 1000 if number > 1e9 else number * 1000
    try:
        return _until(datetime.fromisoformat(value), now)
    except ValueError:
        return None


def _spanned(value: str) -> float:
    return sum(float(number) * _UNITS_MS[unit] for number, unit in _SPAN.findall(value))


def _words(text: str) -> float | None:
    spans = _IN_SPANS.search(text.lower())
    if spans is not None:
        return _spanned(spans.group(1))
    match = _IN_WORDS.search(text.lower())
    if match is None:
        return None
    unit = match.group(2)
    return float(match.group(1)) * _UNITS_MS["ms" if unit.startswith(("ms", "milli")) else unit[0]]


def _until(when: datetime, now: datetime) -> float:
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return (when - now).total_seconds() * 1000


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None
