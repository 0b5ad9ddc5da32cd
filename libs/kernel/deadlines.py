"""The deadline of the work in hand, carried along its calls."""

from contextvars import ContextVar
from types import TracebackType

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


def current_deadline() -> float | None:
    """The monotonic time at which the caller stops waiting, or None outside any call."""
    return _deadline.get()


def carry_deadline(monotonic_s: float | None) -> None:
    """Let the rest of the running task work under that deadline; None frees work that outlives its caller."""
    _deadline.set(monotonic_s)


class deadline_at:  # read as a statement: "with deadline_at(None)"; no generator, for every call passes several
    """Let the block run under a deadline given in monotonic seconds."""

    __slots__ = ("_monotonic_s", "_token")

    def __init__(self, monotonic_s: float | None) -> None:
        self._monotonic_s = monotonic_s

    def __enter__(self) -> None:
        self._token = _deadline.set(self._monotonic_s)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _deadline.reset(self._token)
