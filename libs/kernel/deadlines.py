"""The deadline of the work in hand, carried along its calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


def current_deadline() -> float | None:
    """The monotonic time at which the caller stops waiting, or None outside any call."""
    return _deadline.get()


def carry_deadline(monotonic_s: float | None) -> None:
    """Let the rest of the running task work under that deadline; None frees work that outlives its caller."""
    _deadline.set(monotonic_s)


@contextmanager
def deadline_at(monotonic_s: float | None) -> Iterator[None]:
    """Let the block run under a deadline given in monotonic seconds."""
    token = _deadline.set(monotonic_s)
    try:
        yield
    finally:
        _deadline.reset(token)
