"""The facts that tie the records of one request together, carried by the running task."""

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType, TracebackType

_NONE: Mapping[str, str] = MappingProxyType({})
_facts: ContextVar[Mapping[str, str]] = ContextVar("log_facts", default=_NONE)
_traceparent: ContextVar[str] = ContextVar("traceparent", default="")


def facts() -> Mapping[str, str]:
    """What is added to every log line written here: request_id, tenant, caller, method, and what `bound` added."""
    return _facts.get()


def bind(**more: str) -> None:
    """Add facts for the rest of the running task."""
    _facts.set({**_facts.get(), **more})


class bound:  # read as a statement: "with bound(task_id=task.id)"
    """Add facts for the block: `with bound(task_id=task.id): ...`."""

    __slots__ = ("_more", "_token")

    def __init__(self, **more: str) -> None:
        self._more = more

    def __enter__(self) -> None:
        self._token = _facts.set({**_facts.get(), **self._more})

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _facts.reset(self._token)


def current_traceparent() -> str:
    """The W3C trace context of the work in hand: of its own span where this process makes spans, else the one that came
    in and is passed on; "" outside a trace."""
    return _traceparent.get()


def current_trace() -> tuple[str, str]:
    """(trace id, span id) of that, in hex; two empty texts outside a trace."""
    parts = _traceparent.get().split("-")
    return (parts[1], parts[2]) if len(parts) == 4 else ("", "")


def carry_traceparent(value: str) -> None:
    """Let the running task belong to that trace."""
    _traceparent.set(value)
