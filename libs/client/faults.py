"""What can go wrong for a caller, as exceptions. Branch on `code`; fall back on `retryable` and `category` (ERR-3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from libs.client.shapes import Run


class PointsmanError(Exception):
    """Every fault of this library."""


@dataclass(eq=False)
class Problem(PointsmanError):
    """The server refused. `code` is "" where what answered is no Pointsman; `retry_after_s` None where nobody knows.

    `errors` are (pointer, reason) of the fields that are wrong.
    """

    status: int
    code: str
    detail: str
    retryable: bool = False
    category: str = ""
    scope: str = ""
    request_id: str = ""
    retry_after_s: float | None = None
    errors: tuple[tuple[str, str], ...] = ()
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.code or self.status}: {self.detail}"


@dataclass(eq=False)
class Unreachable(PointsmanError):
    """Nobody answered, or not to the end. `sent`: the request may have arrived; False proves that nothing was made."""

    reason: str
    sent: bool = True

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class RunUnsuccessful(PointsmanError):
    """HTTP was well and the Run was not: it came to rest without a result. `run.error` says why."""

    run: Run

    def __str__(self) -> str:
        error = self.run.error
        return f"run {self.run.id} is {self.run.status}" + (f": {error.code}: {error.message}" if error else "")


def problem_of(status: int, body: Any, retry_after: str | None) -> Problem:
    """The problem in an answer, whatever answered."""
    told: Mapping[str, Any] = body if isinstance(body, dict) else {}
    listed = told.get("errors")
    errors = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return Problem(
        status=status,
        code=str(told.get("code") or ""),
        detail=str(told.get("detail") or told.get("title") or f"the server answered {status}"),
        retryable=told.get("retryable") is True,
        category=str(told.get("category") or ""),
        scope=str(told.get("scope") or ""),
        request_id=str(told.get("request_id") or ""),
        retry_after_s=seconds_in(retry_after),
        errors=tuple((str(item.get("pointer", "")), str(item.get("reason", ""))) for item in errors),
        body=told,
    )


def seconds_in(retry_after: str | None) -> float | None:
    """Retry-After in seconds. Its other spelling, a date, is read as unknown: it depends on two clocks."""
    text = (retry_after or "").strip()
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 9 else None
