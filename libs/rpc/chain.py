"""Wraps handlers, once at registration, so that every transport runs the same interceptors around the same code.

A wrapped handler takes and gives bytes: decoding and encoding happen inside the faults interceptor, so an unreadable
message is a fault like any other and a transport never puts an exception's text on the wire.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol

import grpc

from libs.faults.fault import Fault
from libs.rpc.interceptors.faults import FaultsInterceptor
from libs.rpc.interceptors.incoming import IncomingCall, Interceptor, Method
from libs.rpc.loopback_context import LoopbackContext
from libs.rpc.registrar import Handler
from libs.rpc.running import RunningCalls


class Admitted(Protocol):
    """What holds for a call that was let in."""

    async def asks(self, request: Any) -> None:
        """The request message, before its method begins. May wait, change the message and raise a Fault."""
        ...

    async def told(self, response: Any) -> None:
        """A message that is about to leave. May wait and raise a Fault in its place."""
        ...

    def left(self) -> None:
        """The call has ended, in whatever way; said once."""
        ...


Admit = Callable[[IncomingCall], Awaitable[Admitted | None]]


class HandlerChain:
    """The interceptors of one server.

    `admit` may wait and raise a Fault (a key's check); it runs after the interceptors have opened. It may answer
    what else holds for the call: whose its request is and what it brings, and what its answer shows; a stream of
    requests is not looked at.
    """

    def __init__(
        self,
        faults: FaultsInterceptor,
        interceptors: Sequence[Interceptor],
        running: RunningCalls,
        admit: Admit | None = None,
    ) -> None:
        self._faults = faults
        self._interceptors = tuple(interceptors)
        self._running = running
        self._admit = admit

    def wrap(self, service: str, name: str, handler: Handler) -> Any:
        """The handler with everything around it. TypeError for a servicer method of a style that is not served."""
        method = Method(
            service, name, f"/{service}/{name}", bool(handler.request_streaming), bool(handler.response_streaming)
        )
        if method.response_streaming:
            behaviour = handler.stream_stream if method.request_streaming else handler.unary_stream
            wrapped = self._stream(method, handler, _checked(method, behaviour))
            make = (
                grpc.stream_stream_rpc_method_handler
                if method.request_streaming
                else grpc.unary_stream_rpc_method_handler
            )
        else:
            behaviour = handler.stream_unary if method.request_streaming else handler.unary_unary
            wrapped = self._unary(method, handler, _checked(method, behaviour))
            make = (
                grpc.stream_unary_rpc_method_handler
                if method.request_streaming
                else grpc.unary_unary_rpc_method_handler
            )
        return make(wrapped)

    def _unary(self, method: Method, handler: Any, behaviour: Any) -> Any:
        faults, interceptors, running, admit = self._faults, self._interceptors, self._running, self._admit
        decode = _messages if method.request_streaming else _message
        decoder, encoder = handler.request_deserializer, handler.response_serializer

        async def unary(request: Any, context: Any) -> bytes:
            call = IncomingCall(method, context)
            token = running.enter(method, type(context) is LoopbackContext)
            opened = 0
            admitted: Admitted | None = None
            try:
                running.admit()
                for interceptor in interceptors:
                    interceptor.opened(call)
                    opened += 1
                admitted = await admit(call) if admit is not None else None
                message = decode(decoder, request)
                if admitted is not None and not method.request_streaming:
                    await admitted.asks(message)
                response = await behaviour(message, context)
                if admitted is not None:
                    await admitted.told(response)
                encoded: bytes = encoder(response)
                call.outcome = "ok"
                return encoded
            except BaseException as error:
                await faults.end(call, error)
            finally:
                while opened:
                    opened -= 1
                    interceptors[opened].closed(call)
                if admitted is not None:
                    admitted.left()
                running.leave(token)

        return unary

    def _stream(self, method: Method, handler: Any, behaviour: Any) -> Any:
        faults, interceptors, running, admit = self._faults, self._interceptors, self._running, self._admit
        decode = _messages if method.request_streaming else _message
        decoder, encoder = handler.request_deserializer, handler.response_serializer

        async def stream(request: Any, context: Any) -> AsyncIterator[bytes]:
            call = IncomingCall(method, context)
            token = running.enter(method, type(context) is LoopbackContext)
            opened = 0
            admitted: Admitted | None = None
            try:
                running.admit()
                for interceptor in interceptors:
                    interceptor.opened(call)
                    opened += 1
                admitted = await admit(call) if admit is not None else None
                message = decode(decoder, request)
                if admitted is not None and not method.request_streaming:
                    await admitted.asks(message)
                responses = behaviour(message, context)
                try:
                    async for response in responses:
                        if admitted is not None:
                            await admitted.told(response)
                        yield encoder(response)
                finally:
                    await responses.aclose()
                call.outcome = "ok"
            except GeneratorExit:  # the transport gave the stream up: nothing can be sent any more
                call.outcome = "cancelled"
                raise
            except BaseException as error:
                await faults.end(call, error)
            finally:
                while opened:
                    opened -= 1
                    interceptors[opened].closed(call)
                if admitted is not None:
                    admitted.left()
                running.leave(token)

        return stream


def _message(decoder: Callable[[bytes], Any], raw: bytes) -> Any:
    try:
        return decoder(raw)
    except Exception as error:
        raise Fault.of("malformed_request", "the request message cannot be decoded") from error


async def _messages(decoder: Callable[[bytes], Any], raws: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    async for raw in raws:
        yield _message(decoder, raw)


def _checked(method: Method, behaviour: Any) -> Any:
    """The servicer's method, if it is async; a fault in its place if the servicer does not override it."""
    fits = inspect.isasyncgenfunction if method.response_streaming else inspect.iscoroutinefunction
    if fits(behaviour):
        return behaviour
    if getattr(behaviour, "__module__", "").endswith("_pb2_grpc"):
        return _unimplemented_stream(method) if method.response_streaming else _unimplemented(method)
    style = "an async generator" if method.response_streaming else "a coroutine function"
    raise TypeError(f"{method.path} must be {style}")


def _unimplemented(method: Method) -> Any:
    async def refuse(request: Any, context: Any) -> Any:
        raise Fault.of("unimplemented", f"{method.path} is not served here")

    return refuse


def _unimplemented_stream(method: Method) -> Any:
    async def refuse(request: Any, context: Any) -> AsyncIterator[Any]:
        raise Fault.of("unimplemented", f"{method.path} is not served here")
        yield

    return refuse
