"""The facts that tie the records of one request together, carried by the running task."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

_NONE: Mapping[str, str] = MappingProxyType({})
_facts: ContextVar[Mapping[str, str]] = ContextVar("log_facts", default=_NONE)
_traceparent: ContextVar[str] = ContextVar("traceparent", default="")


def facts() -> Mapping[str, str]:
    """What is added to every log line written here: request_id, tenant, caller, method, and what `bound` added."""
    return _facts.get()


def bind(**more: str) -> None:
    """Add facts for the rest of the running task."""
    _facts.set({**_facts.get(), **more})


@contextmanager
def bound(**more: str) -> Iterator[None]:
    """Add facts for the block: `with bound(task_id=task.id): ...`."""
    token = _facts.set({**_facts.get(), **more})
    try:
        yield
    finally:
        _facts.reset(token)


def current_traceparent() -> str:
    """The W3C trace context that came in and is passed on while no tracing SDK is installed; "" outside a trace."""
    return _traceparent.get()


def carry_traceparent(value: str) -> None:
    """Let the running task belong to that trace."""
    _traceparent.set(value)
