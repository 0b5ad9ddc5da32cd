"""One call over the in-process channel: what client and server share, and nothing of either.

Laws of this file:
- `finish` is called at most once with effect; the first status wins (answer, abort, deadline or cancellation);
- only bytes cross: no message object is ever shared between the two sides;
- the server side never holds the client's call object, so that a call nobody holds any more can be cancelled;
- time is the loop's, so a loop with virtual time needs no change here.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import grpc

from libs.rpc.limits import STREAM_BUFFER_MESSAGES

Metadata = tuple[tuple[str, Any], ...]
OK = grpc.StatusCode.OK
LOCALLY_CANCELLED = "Locally cancelled by application!"


class PipeClosed(Exception):
    """The reader is gone: what is written now would be lost."""


class Pipe:
    """Messages of one direction of a stream: one writer, one reader, bounded."""

    __slots__ = ("_closed", "_discarded", "_items", "_reader", "_writer")

    def __init__(self) -> None:
        self._items: deque[bytes] = deque()
        self._closed = False
        self._discarded = False
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    async def put(self, item: bytes) -> None:
        """Hand over a message; waits while the buffer is full. PipeClosed when nobody will read it."""
        while len(self._items) >= STREAM_BUFFER_MESSAGES and not self._closed:
            self._writer = asyncio.get_running_loop().create_future()
            await self._writer
        if self._closed:
            raise PipeClosed
        self._items.append(item)
        _wake(self._reader)

    async def get(self) -> bytes | None:
        """The next message; None after the last one."""
        while not self._items:
            if self._closed:
                return None
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        item = self._items.popleft()
        _wake(self._writer)
        return item

    def close(self, discard: bool = False) -> None:
        """No more messages. What is buffered can still be read unless `discard`."""
        self._closed = True
        if discard:
            self._items.clear()
        _wake(self._reader)
        _wake(self._writer)

    @property
    def closed(self) -> bool:
        """Has either side closed it?"""
        return self._closed


def _wake(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def too_large(direction: str, raw: bytes, limit: int) -> str:
    """gRPC's own words for a message over the limit."""
    return f"{direction} message larger than max ({len(raw)} vs. {limit})"


class Exchange:
    """The state of one call."""

    __slots__ = (
        "_active", "_callbacks", "_initial_waiter", "_timer", "_waiter", "answer_limit", "code", "deadline", "details",
        "done", "initial_metadata", "limit", "locally_cancelled", "loop", "metadata", "path", "requests", "response",
        "responses", "running", "task", "trailing_metadata",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        timeout: float | None,
        metadata: Metadata,
        active: "set[Exchange]",
        limit: int,
        answer_limit: int,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.loop = loop
        self.path = path
        self.metadata = metadata
        self.limit = limit
        self.answer_limit = answer_limit
        self.done = False
        self.code: grpc.StatusCode | None = None
        self.details = ""
        self.initial_metadata: Metadata | None = None
        self.trailing_metadata: Metadata = ()
        self.response: bytes | None = None
        self.requests: Pipe | None = None
        self.responses: Pipe | None = None
        self.task: asyncio.Task[None] | None = None
        self.locally_cancelled = False
        self._waiter: asyncio.Future[None] | None = None
        self._initial_waiter: asyncio.Future[None] | None = None
        self._callbacks: list[Callable[[], object]] | None = None
        self._active = active
        self.running: set[Exchange] | None = None
        active.add(self)
        if timeout is None:
            self.deadline: float | None = None
            self._timer = None
        else:
            self.deadline = loop.time() + timeout
            self._timer = loop.call_at(self.deadline, self._expire)
            if timeout <= 0:
                self._expire()

    def open_pipes(self, requests: bool, responses: bool) -> None:
        """Make the pipes of the streams; closed ones if the call has ended before it began."""
        if requests:
            self.requests = Pipe()
            if self.done:
                self.requests.close(discard=True)
        if responses:
            self.responses = Pipe()
            if self.done:
                self.responses.close()

    def finish(
        self, code: grpc.StatusCode, details: str = "", trailing: Metadata = (), response: bytes | None = None
    ) -> None:
        """End the call with this status; a later status has no effect."""
        if self.done:
            return
        self.done = True
        self.code = code
        self.details = details
        self.trailing_metadata = trailing
        self.response = response
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._active.discard(self)
        if self.running is not None:
            self.running.discard(self)
        if self.initial_metadata is None:
            self.initial_metadata = ()
        if self.requests is not None:
            self.requests.close(discard=True)
        if self.responses is not None:
            self.responses.close()
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        _wake(self._initial_waiter)
        if self._callbacks:
            for callback in self._callbacks:
                self.loop.call_soon(callback)
            self._callbacks = None

    def give_up(self, code: grpc.StatusCode, details: str) -> None:
        """End the call from outside the handler and stop the handler."""
        if self.done:
            return
        self.finish(code, details)
        if self.responses is not None:
            self.responses.close(discard=True)
        if self.task is not None:
            self.task.cancel()

    def cancel(self, details: str = LOCALLY_CANCELLED) -> bool:
        """The client's cancellation. False if the call had ended."""
        if self.done:
            return False
        self.locally_cancelled = True
        self.give_up(grpc.StatusCode.CANCELLED, details)
        return True

    def _expire(self) -> None:
        self.give_up(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")

    def waiter(self) -> "asyncio.Future[None]":
        """A future that is done when the call is."""
        if self._waiter is None or self._waiter.cancelled():
            self._waiter = self.loop.create_future()
            if self.done:
                self._waiter.set_result(None)
        return self._waiter

    def send_initial(self, metadata: Metadata) -> None:
        """The server's initial metadata; once."""
        self.initial_metadata = metadata
        _wake(self._initial_waiter)

    async def wait_initial(self) -> Metadata:
        """The server's initial metadata, empty if the call ended without any."""
        while self.initial_metadata is None:
            if self._initial_waiter is None or self._initial_waiter.done():
                self._initial_waiter = self.loop.create_future()
            # Shielded: several may wait, and one that leaves must not take the others along.
            await asyncio.shield(self._initial_waiter)
        return self.initial_metadata

    async def wait_done(self) -> None:
        """Return when the call has ended."""
        if not self.done:
            await asyncio.shield(self.waiter())

    def on_done(self, callback: Callable[[], object]) -> None:
        """Call back (soon, on the loop) when the call ends. The callback must not hold the client's call object."""
        if self.done:
            self.loop.call_soon(callback)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def time_remaining(self) -> float | None:
        """Seconds until the deadline, not below 0; None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - self.loop.time())
