"""The in-process channel: generated stubs call servicers of the same process, and nothing else changes.

It implements `grpc.aio.Channel`, serialises every message, and runs the handlers that a `RpcServer` made (with the same
interceptors as on a socket), each in a task of its own with an empty context. It does not go through gRPC's core,
whose two crossings cost about half a millisecond of processor time a call.

Laws of this file:
- what gRPC does to a caller, the loopback does: deadlines, cancellation, metadata, statuses, limits; the contract suite
  in tests/contract/rpc holds it to that, case by case, against the two socket transports;
- a service that is not registered here is UNAVAILABLE (its context has not started or has drained), a method that its
  service does not know is UNIMPLEMENTED.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextvars import Context
from types import TracebackType
from typing import Any, Self

import grpc
from grpc import aio

from libs.rpc.limits import ANSWER_LIMIT_BYTES, MESSAGE_LIMIT_BYTES
from libs.rpc.loopback_calls import (
    StreamStreamCall,
    StreamUnaryCall,
    UnaryStreamCall,
    UnaryUnaryCall,
)
from libs.rpc.loopback_context import LoopbackContext
from libs.rpc.loopback_exchange import Exchange, Metadata, too_large
from libs.rpc.registrar import Handler

_log = logging.getLogger(__name__)


class LoopbackRegistry:
    """Which handlers this process serves in-process. One for the process; tests make their own."""

    def __init__(self) -> None:
        self._handlers: dict[str, tuple[Handler, set[Exchange]]] = {}
        self._services: set[str] = set()

    def add(self, service: str, handlers: Mapping[str, Handler], running: set[Exchange]) -> None:
        """Serve a service: handlers by method name; `running` collects its calls in flight. ValueError if served."""
        if service in self._services:
            raise ValueError(f"service {service} is already served in this process")
        self._services.add(service)
        for method, handler in handlers.items():
            self._handlers[f"/{service}/{method}"] = (handler, running)

    def remove(self, service: str) -> None:
        """Serve it no more; calls in flight go on."""
        self._services.discard(service)
        for path in [path for path in self._handlers if path.startswith(f"/{service}/")]:
            del self._handlers[path]

    def services(self) -> list[str]:
        """The services served now."""
        return sorted(self._services)

    def find(self, path: str) -> "tuple[Handler, set[Exchange]] | None":
        """The handler of "/package.Service/Method" and the calls in flight of its service."""
        return self._handlers.get(path)

    def refusal(self, path: str) -> tuple[grpc.StatusCode, str]:
        """Why `find` found nothing."""
        service = path.split("/", 2)[1]
        if service in self._services:
            return grpc.StatusCode.UNIMPLEMENTED, "Method not found!"
        return grpc.StatusCode.UNAVAILABLE, f"loopback: nobody serves {service} in this process"


PROCESS = LoopbackRegistry()


class LoopbackChannel(aio.Channel):
    """A `grpc.aio.Channel` to the servicers of this process. Made and used on one event loop."""

    def __init__(
        self,
        registry: LoopbackRegistry = PROCESS,
        message_limit_bytes: int = MESSAGE_LIMIT_BYTES,
        answer_limit_bytes: int = ANSWER_LIMIT_BYTES,
    ) -> None:
        self._registry = registry
        self._limits = message_limit_bytes, answer_limit_bytes
        self._active: set[Exchange] = set()
        self._closed = asyncio.Event()

    def unary_unary(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: bool = False,
    ) -> Any:
        """A callable for that method, as generated stubs ask for it."""
        return _UnaryUnary(self, method, request_serializer, response_deserializer)

    def unary_stream(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: bool = False,
    ) -> Any:
        """A callable for that method, as generated stubs ask for it."""
        return _UnaryStream(self, method, request_serializer, response_deserializer)

    def stream_unary(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: bool = False,
    ) -> Any:
        """A callable for that method, as generated stubs ask for it."""
        return _StreamUnary(self, method, request_serializer, response_deserializer)

    def stream_stream(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: bool = False,
    ) -> Any:
        """A callable for that method, as generated stubs ask for it."""
        return _StreamStream(self, method, request_serializer, response_deserializer)

    async def close(self, grace: float | None = None) -> None:
        """Take no new calls; cancel those in flight, after `grace` seconds if given."""
        self._closed.set()
        if grace and self._active:
            waiting = [asyncio.ensure_future(exchange.wait_done()) for exchange in self._active]
            await asyncio.wait(waiting, timeout=grace)
            for task in waiting:
                task.cancel()
        for exchange in tuple(self._active):
            exchange.cancel("Channel closed!")

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """READY until closed: there is nothing to connect to."""
        return grpc.ChannelConnectivity.SHUTDOWN if self._closed.is_set() else grpc.ChannelConnectivity.READY

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Return when the state is another one."""
        if self.get_state() is last_observed_state:
            if self._closed.is_set():
                await asyncio.get_running_loop().create_future()
            await self._closed.wait()

    async def channel_ready(self) -> None:
        """Return at once."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        await self.close()
        return None

    def begin(self, path: str, timeout: float | None, metadata: Any) -> Exchange:
        """A new call on this channel."""
        if self._closed.is_set():
            raise aio.UsageError("Channel is closed.")
        given: Metadata = tuple(metadata) if metadata else ()
        return Exchange(path, timeout, given, self._active, *self._limits)

    def serve(self, exchange: Exchange, run: Callable[[Exchange, Any, Any], Any], request: Any) -> None:
        """Start the handler of the call, or end the call when there is none."""
        if exchange.done:  # too large, or too late
            return
        found = self._registry.find(exchange.path)
        if found is None:
            exchange.finish(*self._registry.refusal(exchange.path))
        else:
            handler, exchange.running = found
            exchange.running.add(exchange)
            # An empty context: what the caller's task carries reaches the handler by metadata or not at all.
            exchange.task = exchange.loop.create_task(run(exchange, handler, request), context=Context())


class _MultiCallable:
    __slots__ = ("_channel", "_decode", "_encode", "_path")

    def __init__(self, channel: LoopbackChannel, path: str, encode: Any, decode: Any) -> None:
        self._channel = channel
        self._path = path
        self._encode = encode
        self._decode = decode

    def _begin_with(self, request: Any, timeout: float | None, metadata: Any) -> tuple[Exchange, bytes]:
        raw: bytes = request if self._encode is None else self._encode(request)
        exchange = self._channel.begin(self._path, timeout, metadata)
        if len(raw) > exchange.limit:
            exchange.finish(grpc.StatusCode.RESOURCE_EXHAUSTED, too_large("Sent", raw, exchange.limit))
        return exchange, raw


class _UnaryUnary(_MultiCallable, aio.UnaryUnaryMultiCallable):
    __slots__ = ()

    def __call__(
        self,
        request: Any,
        *,
        timeout: float | None = None,
        metadata: Any = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> UnaryUnaryCall:
        exchange, raw = self._begin_with(request, timeout, metadata)
        self._channel.serve(exchange, _run_unary_unary, raw)
        return UnaryUnaryCall(exchange, self._encode, self._decode)


class _UnaryStream(_MultiCallable, aio.UnaryStreamMultiCallable):
    __slots__ = ()

    def __call__(
        self,
        request: Any,
        *,
        timeout: float | None = None,
        metadata: Any = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> UnaryStreamCall:
        exchange, raw = self._begin_with(request, timeout, metadata)
        exchange.open_pipes(requests=False, responses=True)
        self._channel.serve(exchange, _run_unary_stream, raw)
        return UnaryStreamCall(exchange, self._encode, self._decode)


class _StreamUnary(_MultiCallable, aio.StreamUnaryMultiCallable):
    __slots__ = ()

    def __call__(
        self,
        request_iterator: Any = None,
        timeout: float | None = None,
        metadata: Any = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> StreamUnaryCall:
        exchange = self._channel.begin(self._path, timeout, metadata)
        exchange.open_pipes(requests=True, responses=False)
        self._channel.serve(exchange, _run_stream_unary, None)
        return StreamUnaryCall(exchange, self._encode, self._decode, request_iterator)


class _StreamStream(_MultiCallable, aio.StreamStreamMultiCallable):
    __slots__ = ()

    def __call__(
        self,
        request_iterator: Any = None,
        timeout: float | None = None,
        metadata: Any = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> StreamStreamCall:
        exchange = self._channel.begin(self._path, timeout, metadata)
        exchange.open_pipes(requests=True, responses=True)
        self._channel.serve(exchange, _run_stream_stream, None)
        return StreamStreamCall(exchange, self._encode, self._decode, request_iterator)


class _Requests:
    """The server's iterator over a stream of requests."""

    __slots__ = ("_context",)

    def __init__(self, context: LoopbackContext) -> None:
        self._context = context

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self._context.read()
        if message is aio.EOF:
            raise StopAsyncIteration
        return message


async def _run_unary_unary(exchange: Exchange, handler: Any, raw: bytes) -> None:
    context = LoopbackContext(exchange, handler)
    try:
        request = raw if handler.request_deserializer is None else handler.request_deserializer(raw)
        _answer(context, exchange, handler, await handler.unary_unary(request, context))
    except BaseException as error:
        _end(exchange, error)


async def _run_stream_unary(exchange: Exchange, handler: Any, _: None) -> None:
    context = LoopbackContext(exchange, handler)
    try:
        _answer(context, exchange, handler, await handler.stream_unary(_Requests(context), context))
    except BaseException as error:
        _end(exchange, error)


async def _run_unary_stream(exchange: Exchange, handler: Any, raw: bytes) -> None:
    context = LoopbackContext(exchange, handler)
    try:
        request = raw if handler.request_deserializer is None else handler.request_deserializer(raw)
        await _send_all(context, handler.unary_stream(request, context))
    except BaseException as error:
        _end(exchange, error)


async def _run_stream_stream(exchange: Exchange, handler: Any, _: None) -> None:
    context = LoopbackContext(exchange, handler)
    try:
        await _send_all(context, handler.stream_stream(_Requests(context), context))
    except BaseException as error:
        _end(exchange, error)


def _answer(context: LoopbackContext, exchange: Exchange, handler: Any, response: Any) -> None:
    if exchange.done:
        return
    raw = response if handler.response_serializer is None else handler.response_serializer(response)
    if len(raw) > exchange.answer_limit:
        exchange.finish(grpc.StatusCode.RESOURCE_EXHAUSTED, too_large("Sent", raw, exchange.answer_limit))
    else:
        context.complete(raw)


async def _send_all(context: LoopbackContext, responses: Any) -> None:
    if hasattr(responses, "__aiter__"):
        try:
            async for response in responses:
                await context.write(response)
        finally:
            await responses.aclose()
    else:
        await responses
    context.complete(None)


def _end(exchange: Exchange, error: BaseException) -> None:
    """A handler has raised. What was not said by `abort` is said without the exception's text."""
    if isinstance(error, aio.AbortError):
        return
    if isinstance(error, asyncio.CancelledError):
        exchange.finish(grpc.StatusCode.UNAVAILABLE, "the server gave up the call")
        return
    if not isinstance(error, Exception):
        exchange.finish(grpc.StatusCode.UNAVAILABLE, "the server is stopping")
        raise error
    _log.error("a handler without the faults interceptor failed", exc_info=error, extra={"rpc_method": exchange.path})
    exchange.finish(grpc.StatusCode.UNKNOWN, "")
