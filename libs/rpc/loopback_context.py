"""The server's view of a loopback call: the `grpc.aio.ServicerContext` that a servicer method is given."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import grpc
from grpc import aio

from libs.rpc.loopback_exchange import OK, Exchange, Metadata, PipeClosed, too_large


class LoopbackContext(aio.ServicerContext):
    """What gRPC offers to a handler, over an `Exchange`."""

    __slots__ = ("_aborted", "_code", "_details", "_exchange", "_handler", "_trailing")

    def __init__(self, exchange: Exchange, handler: Any) -> None:
        self._exchange = exchange
        self._handler = handler
        # A flag and not the exception: that would hold the frames of the handler, and they this context.
        self._aborted = False
        self._code: grpc.StatusCode | None = None
        self._details = ""
        self._trailing: Metadata = ()

    # --- streams: the reader-writer style ---

    async def read(self) -> Any:
        """The next request message, `grpc.aio.EOF` after the last."""
        assert self._exchange.requests is not None
        raw = await self._exchange.requests.get()
        if raw is None:
            return aio.EOF
        decode = self._handler.request_deserializer
        return raw if decode is None else decode(raw)

    async def write(self, message: Any) -> None:
        """Send one response message; waits while the reader is slow."""
        if self._aborted:
            raise aio.AbortError("Locally aborted.")
        assert self._exchange.responses is not None
        encode = self._handler.response_serializer
        raw = message if encode is None else encode(message)
        if len(raw) > self._exchange.answer_limit:
            self._aborted = True
            self._exchange.finish(
                grpc.StatusCode.RESOURCE_EXHAUSTED, too_large("Sent", raw, self._exchange.answer_limit)
            )
            raise aio.AbortError("the message is too large")
        if self._exchange.initial_metadata is None:
            self._exchange.send_initial(())
        try:
            await self._exchange.responses.put(raw)
        except PipeClosed:
            raise asyncio.CancelledError("the client is gone") from None

    # --- metadata and status ---

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        """Send metadata ahead of the first message; once."""
        if self._exchange.initial_metadata is not None and not self._exchange.done:
            raise aio.UsageError("Send initial metadata failed: already sent")
        self._exchange.send_initial(tuple(initial_metadata))

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> NoReturn:
        """End the call with a status that is not OK. Always raises."""
        if self._aborted:
            raise aio.UsageError("Abort already called!")
        if code is OK or code == 0:
            raise ValueError("abort with OK")
        self._aborted = True
        self._code = code
        self._details = details or self._details
        trailing = tuple(trailing_metadata) or self._trailing
        self._trailing = trailing
        self._exchange.finish(code, self._details, trailing)
        raise aio.AbortError("Locally aborted.")

    async def abort_with_status(self, status: Any) -> NoReturn:
        """`abort` with a `grpc.Status`."""
        await self.abort(status.code, status.details, status.trailing_metadata)

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        """Metadata to send with the status."""
        self._trailing = tuple(trailing_metadata)

    def trailing_metadata(self) -> Any:
        """What `set_trailing_metadata` was given."""
        return self._trailing

    def invocation_metadata(self) -> Any:
        """The client's metadata."""
        return self._exchange.metadata

    def set_code(self, code: grpc.StatusCode) -> None:
        """The status to end with when the handler returns."""
        self._code = code

    def code(self) -> Any:
        """What `set_code` or `abort` was given."""
        return self._code

    def set_details(self, details: str) -> None:
        """The text to end with when the handler returns."""
        self._details = details

    def details(self) -> str:
        """What `set_details` or `abort` was given."""
        return self._details

    def complete(self, response: bytes | None) -> None:
        """The handler has returned: send its answer and status."""
        if self._aborted:
            return
        code = self._code
        if code is None or code is OK:
            self._exchange.finish(OK, self._details, self._trailing, response)
        else:
            self._exchange.finish(code, self._details, self._trailing)

    # --- the call ---

    def set_compression(self, compression: Any) -> None:
        """Without meaning in one process."""

    def disable_next_message_compression(self) -> None:
        """Without meaning in one process."""

    def peer(self) -> str:
        """Where the call comes from."""
        return "loopback:"

    def peer_identities(self) -> Iterable[bytes] | None:
        """None: the peer is this process."""
        return None

    def peer_identity_key(self) -> str | None:
        """None: the peer is this process."""
        return None

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """Empty: the peer is this process."""
        return {}

    def time_remaining(self) -> Any:
        """Seconds until the client's deadline, None without one."""
        return self._exchange.time_remaining()

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call back with this context when the call ends."""
        self._exchange.on_done(lambda: callback(self))

    def cancelled(self) -> bool:
        """Was the call given up by the client or its deadline?"""
        return self._exchange.done and self._exchange.code in (
            grpc.StatusCode.CANCELLED,
            grpc.StatusCode.DEADLINE_EXCEEDED,
        )

    def done(self) -> bool:
        """Has a status been sent?"""
        return self._exchange.done
