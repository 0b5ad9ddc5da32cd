"""The client's view of a loopback call: the call objects that generated stubs return.

A call that nobody holds any more is cancelled (`__del__`), as in gRPC. Hence no exchange refers to its call object.
"""

import asyncio
import logging
from collections.abc import AsyncIterable, Callable, Generator, Iterable
from contextlib import suppress
from typing import Any

import grpc
from grpc import aio

from libs.rpc.loopback_exchange import OK, Exchange, PipeClosed, too_large

_log = logging.getLogger(__name__)
Codec = Callable[[Any], Any] | None
Requests = AsyncIterable[Any] | Iterable[Any] | None
_UNREAD = object()


class LoopbackCall:
    """What every kind of call has."""

    __slots__ = ("__weakref__", "_decode", "_encode", "_exchange", "_message")

    def __init__(self, exchange: Exchange, encode: Codec, decode: Codec) -> None:
        self._exchange = exchange
        self._encode = encode
        self._decode = decode
        self._message: Any = _UNREAD

    def __del__(self) -> None:
        if not self._exchange.done and not self._exchange.loop.is_closed():
            self._exchange.cancel("Cancelled upon garbage collection!")

    def cancel(self) -> bool:
        """Give the call up: its handler is cancelled. False if it had ended."""
        return self._exchange.cancel()

    def cancelled(self) -> bool:
        """Did the call end with CANCELLED?"""
        return self._exchange.code is grpc.StatusCode.CANCELLED

    def done(self) -> bool:
        """Has the call ended?"""
        return self._exchange.done

    def time_remaining(self) -> float | None:
        """Seconds until the deadline, None without one."""
        return self._exchange.time_remaining()

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call back with this call when it has ended."""
        self._exchange.on_done(lambda: callback(self))

    async def initial_metadata(self) -> aio.Metadata:
        """The server's initial metadata, as soon as it is there."""
        return aio.Metadata.from_tuple(await self._exchange.wait_initial())

    async def trailing_metadata(self) -> aio.Metadata:
        """The server's trailing metadata, when the call has ended."""
        await self._exchange.wait_done()
        return aio.Metadata.from_tuple(self._exchange.trailing_metadata)

    async def code(self) -> grpc.StatusCode:
        """The status, when the call has ended."""
        await self._exchange.wait_done()
        assert self._exchange.code is not None
        return self._exchange.code

    async def details(self) -> str:
        """The status text, when the call has ended."""
        await self._exchange.wait_done()
        return self._exchange.details

    async def debug_error_string(self) -> str:
        """Where the call went, for logs."""
        await self._exchange.wait_done()
        return f"loopback:{self._exchange.path}"

    async def wait_for_connection(self) -> None:
        """Return when the server has the call, or raise how it failed."""
        await self._exchange.wait_initial()
        if self._exchange.done:
            self._raise_for_status()

    def _raise_for_status(self) -> None:
        exchange = self._exchange
        if exchange.locally_cancelled:
            raise asyncio.CancelledError
        if exchange.code is not OK:
            assert exchange.code is not None
            raise aio.AioRpcError(
                exchange.code,
                aio.Metadata.from_tuple(exchange.initial_metadata or ()),
                aio.Metadata.from_tuple(exchange.trailing_metadata),
                exchange.details,
                f"loopback:{exchange.path}",
            )

    def __repr__(self) -> str:
        state = self._exchange.code.name if self._exchange.code else "running"
        return f"<{type(self).__name__} {self._exchange.path} {state}>"


class UnaryResponse(LoopbackCall):
    """A call with one response: await it."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Any]:
        exchange = self._exchange
        if not exchange.done:
            try:
                yield from exchange.waiter()
            except asyncio.CancelledError:
                exchange.cancel()
                raise
        if exchange.code is not OK or exchange.locally_cancelled:
            self._raise_for_status()
        if self._message is _UNREAD:
            raw = exchange.response
            self._message = raw if self._decode is None else self._decode(raw)
        return self._message


class StreamResponse(LoopbackCall):
    """A call with a stream of responses: iterate over it, or `read`."""

    __slots__ = ()

    def __aiter__(self) -> "StreamResponse":
        # Not a generator: a generator would hold the call in a cycle, and an abandoned loop would end only with the
        # next collection of cycles.
        return self

    async def __anext__(self) -> Any:
        message = await self.read()
        if message is aio.EOF:
            raise StopAsyncIteration
        return message

    async def read(self) -> Any:
        """The next message, `grpc.aio.EOF` after the last; raises when the call failed."""
        assert self._exchange.responses is not None
        try:
            raw = await self._exchange.responses.get()
        except asyncio.CancelledError:
            self._exchange.cancel()
            raise
        if raw is None:
            self._raise_for_status()
            return aio.EOF
        return raw if self._decode is None else self._decode(raw)


class StreamRequest(LoopbackCall):
    """A call whose requests are a stream: from an iterator, or by `write` and `done_writing`."""

    __slots__ = ("_feeder",)

    def __init__(self, exchange: Exchange, encode: Codec, decode: Codec, requests: Requests) -> None:
        super().__init__(exchange, encode, decode)
        self._feeder: asyncio.Task[None] | None = None
        if requests is not None:
            feeder = exchange.loop.create_task(_feed(exchange, encode, requests))
            self._feeder = feeder
            exchange.on_done(feeder.cancel)

    async def write(self, request: Any) -> None:
        """Send one message; waits while the server is slow."""
        if self._feeder is not None:
            raise aio.UsageError("the call was given an iterator of requests")
        exchange = self._exchange
        if exchange.done:
            raise asyncio.InvalidStateError("RPC already finished.")
        assert exchange.requests is not None
        if exchange.requests.closed:
            raise asyncio.InvalidStateError('RPC is half closed after calling "done_writing".')
        await _send(exchange, self._encode, request)

    async def done_writing(self) -> None:
        """No more messages will be sent."""
        if self._feeder is not None:
            raise aio.UsageError("the call was given an iterator of requests")
        assert self._exchange.requests is not None
        self._exchange.requests.close()


async def _send(exchange: Exchange, encode: Codec, request: Any) -> None:
    raw = request if encode is None else encode(request)
    if len(raw) > exchange.limit:
        exchange.give_up(grpc.StatusCode.RESOURCE_EXHAUSTED, too_large("Sent", raw, exchange.limit))
        return
    assert exchange.requests is not None
    with suppress(PipeClosed):  # the call has ended: its status says how
        await exchange.requests.put(raw)


async def _feed(exchange: Exchange, encode: Codec, requests: Any) -> None:
    """Send what the client's iterator gives; an iterator that fails cancels the call, as in gRPC."""
    try:
        if hasattr(requests, "__aiter__"):
            async for request in requests:
                await _send(exchange, encode, request)
        else:
            for request in requests:
                await _send(exchange, encode, request)
    except Exception:
        _log.exception("the iterator of requests failed", extra={"rpc_method": exchange.path})
        exchange.cancel()
    else:
        assert exchange.requests is not None
        exchange.requests.close()


class UnaryUnaryCall(UnaryResponse, aio.UnaryUnaryCall):
    """One message out, one back."""

    __slots__ = ()


class UnaryStreamCall(StreamResponse, aio.UnaryStreamCall):
    """One message out, a stream back."""

    __slots__ = ()


class StreamUnaryCall(StreamRequest, UnaryResponse, aio.StreamUnaryCall):
    """A stream out, one message back."""

    __slots__ = ()


class StreamStreamCall(StreamRequest, StreamResponse, aio.StreamStreamCall):
    """A stream out, a stream back."""

    __slots__ = ()
