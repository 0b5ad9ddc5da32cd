"""The call that interceptors look at, and what an interceptor is."""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a service. `path` is "/package.Service/Method"."""

    service: str
    name: str
    path: str
    request_streaming: bool
    response_streaming: bool


class IncomingCall:
    """One call on its way through the interceptors.

    `metadata` is the client's, by lower-case key (the last value of a repeated key). `outcome` is "ok", the code of the
    fault that ended it, or "" while it runs. `span` belongs to the telemetry interceptor.
    """

    __slots__ = ("context", "metadata", "method", "outcome", "span", "started")

    def __init__(self, method: Method, context: Any) -> None:
        self.method = method
        self.context = context
        self.metadata: dict[str, Any] = dict(context.invocation_metadata() or ())
        self.outcome = ""
        self.started = 0.0
        self.span: Any = None


class Interceptor(Protocol):
    """Told of every call. Cheap, synchronous, never blocking."""

    def opened(self, call: IncomingCall) -> None:
        """The call has arrived, its request is not read yet. May raise a Fault: then the handler does not run."""
        ...

    def closed(self, call: IncomingCall) -> None:
        """The handler has ended, including its `finally` blocks. Told only to those that were told `opened`."""
        ...
