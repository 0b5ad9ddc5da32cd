"""The outgoing side of the interceptors: around any channel, for generated stubs.

A plain wrapper instead of gRPC's client interceptors. Those put a task between the caller and the call, which costs
more than the whole loopback and has swallowed cancellations; here the caller is given the channel's own call object.

Laws of this file:
- the timeout sent is never more than what remains of the caller's own deadline, less a margin to answer in;
- the identity goes along, a user's key never does;
- a call in a trace takes the trace along; one of a background round begins none;
- nothing here awaits.
"""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import grpc
from grpc import aio
from opentelemetry import trace

from libs.kernel.deadlines import current_deadline
from libs.rpc.identity import NOBODY, Identity, current_identity
from libs.rpc.interceptors.telemetry import TRACEPARENT
from libs.rpc.loopback import LoopbackChannel
from libs.telemetry import names, spans
from libs.telemetry.correlation import current_traceparent

WELL = frozenset({grpc.StatusCode.OK, grpc.StatusCode.CANCELLED})
"""Ends that are no failure: who cancels a call has what it came for, or wants it no more."""
MARGIN_S = 0.010
MARGIN_SHARE = 0.05


def outgoing_timeout(own_s: float | None, deadline: float | None, now: float) -> float | None:
    """min(own, remaining - margin), not below 0; None if neither is known. The margin is 10 ms or 5 % of what remains.

    0 means that the deadline has passed: there is nothing left to send.
    """
    if deadline is None:
        return own_s
    remaining = deadline - now
    left = max(0.0, remaining - min(MARGIN_S, max(0.0, remaining) * MARGIN_SHARE))
    return left if own_s is None else min(own_s, left)


class OutgoingChannel(aio.Channel):
    """A channel that adds deadline, identity and trace to every call of `caller`."""

    def __init__(self, inner: aio.Channel, caller: str = "", tracer: trace.Tracer | None = None) -> None:
        self._inner = inner
        self._caller = caller
        self._tracer = tracer or spans.installed_tracer()
        self._plain = NOBODY.metadata(caller)
        self._last: tuple[Identity, tuple[tuple[str, str], ...]] = (NOBODY, self._plain)

    def timeout(self, own_s: float | None) -> float | None:
        """The timeout to send."""
        deadline = current_deadline()
        return own_s if deadline is None else outgoing_timeout(own_s, deadline, asyncio.get_running_loop().time())

    def metadata(self, given: Any) -> tuple[tuple[str, Any], ...]:
        """The metadata to send: what the caller gave, and what is passed on."""
        identity = current_identity()
        known, pairs = self._last
        if identity is not known:
            pairs = self._plain if identity is NOBODY else identity.metadata(self._caller)
            self._last = (identity, pairs)
        traceparent = current_traceparent()
        if traceparent and self._tracer is None:
            pairs = (*pairs, (TRACEPARENT, traceparent))
        return (*pairs, *given) if given else pairs

    def call(self, inner: Any, path: str, request: Any, timeout: float | None, metadata: Any, **options: Any) -> Any:
        """Make the call through the inner channel's callable; DEADLINE_EXCEEDED at once when no time is left."""
        timeout = self.timeout(timeout)
        if timeout is not None and timeout <= 0:  # gRPC itself may still deliver such a call
            raise aio.AioRpcError(
                grpc.StatusCode.DEADLINE_EXCEEDED, aio.Metadata(), aio.Metadata(), "the deadline has passed"
            )
        pairs = self.metadata(metadata)
        if self._tracer is None or not spans.in_trace():
            return inner(request, timeout=timeout, metadata=pairs, **options)
        return self._traced(self._tracer, inner, path, request, timeout, pairs, options)

    def _traced(
        self, tracer: trace.Tracer, inner: Any, path: str, request: Any, timeout: float | None, pairs: Any, options: Any
    ) -> Any:
        method = path.lstrip("/")
        facts = {names.RPC_SYSTEM: "grpc", names.RPC_METHOD: method}
        span = tracer.start_span(method, kind=trace.SpanKind.CLIENT, attributes=facts)
        carrier: dict[str, str] = {}
        spans.W3C.inject(carrier, trace.set_span_in_context(span))
        try:
            call = inner(request, timeout=timeout, metadata=(*pairs, *carrier.items()), **options)
        except BaseException as error:
            spans.fail(span, spans.code_of(error))
            span.end()
            raise
        call.add_done_callback(lambda ended: _end_span(span, ended))
        return call

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A callable for that method, as generated stubs ask for it."""
        return _Outgoing(self, method, self._inner.unary_unary(method, *args, **kwargs))

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A callable for that method, as generated stubs ask for it."""
        return self._stream(_Outgoing(self, method, self._inner.unary_stream(method, *args, **kwargs)))

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A callable for that method, as generated stubs ask for it."""
        return _Outgoing(self, method, self._inner.stream_unary(method, *args, **kwargs))

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A callable for that method, as generated stubs ask for it."""
        return self._stream(_Outgoing(self, method, self._inner.stream_stream(method, *args, **kwargs)))

    def _stream(self, callable_: "_Outgoing") -> Any:
        if isinstance(self._inner, LoopbackChannel):  # its calls are let go of in time by themselves
            return callable_
        return lambda *args, **kwargs: HeldStream(callable_(*args, **kwargs))

    async def close(self, grace: float | None = None) -> None:
        """Close the inner channel."""
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """The inner channel's state."""
        return self._inner.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait on the inner channel."""
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until the inner channel is ready."""
        await self._inner.channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        await self.close()
        return None


class HeldStream:
    """A stream of responses over a socket that is cancelled as soon as nobody holds it.

    gRPC's own call holds itself in a cycle once it is iterated over, and its handler would go on until the collector of
    cycles has come by twice. Everything but iteration is the inner call's.
    """

    __slots__ = ("_call",)

    def __init__(self, call: Any) -> None:
        self._call = call

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self._call.read()
        if message is aio.EOF:
            raise StopAsyncIteration
        return message

    async def read(self) -> Any:
        """The next message, `grpc.aio.EOF` after the last; raises when the call failed."""
        return await self._call.read()  # in a coroutine of its own, which holds this object while it waits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __del__(self) -> None:
        with suppress(RuntimeError):  # the loop has been closed, and every call with it
            self._call.cancel()


class _Outgoing:
    """The callable of one method; for all four kinds, because the request is passed on as it is."""

    __slots__ = ("_channel", "_inner", "_path")

    def __init__(self, channel: OutgoingChannel, path: str, inner: Any) -> None:
        self._channel = channel
        self._path = path
        self._inner = inner

    def __call__(self, request: Any = None, timeout: float | None = None, metadata: Any = None, **options: Any) -> Any:
        return self._channel.call(self._inner, self._path, request, timeout, metadata, **options)


def _end_span(span: trace.Span, call: Any) -> None:
    code = _code_of(call)
    span.set_attribute(names.RPC_STATUS, code.name)
    if code not in WELL:
        spans.fail(span, code.name)
    span.end()


def _code_of(call: Any) -> grpc.StatusCode:
    """The status of an ended call, without waiting: its coroutine has nothing left to wait for."""
    pending = call.code()
    try:
        pending.send(None)
    except StopIteration as ended:
        return ended.value
    pending.close()
    return grpc.StatusCode.UNKNOWN
