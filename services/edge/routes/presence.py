"""Is the client still there? What it waits for is given up when it is not."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

PARTING = "pointsman.parting"
"""Set in the scope by a server that tells by itself when a client has left."""


class Parting(Protocol):
    """What such a server offers for one request."""

    def tell(self, left: Callable[[], None] | None) -> None:
        """Call this once the client is gone, at once if it is; None: nobody need be told any more."""
        ...


class Presence:
    """`async with Presence(scope, receive) as presence:` cancels the block when the client leaves; `left` tells of it.

    The body of the request must have been read. Where the server does not tell, one task watches for the whole block.
    """

    def __init__(self, scope: Any, receive: Any) -> None:
        self._parting: Parting | None = scope.get(PARTING)
        self._receive = receive
        self._over = False
        self._watch: asyncio.Task[None] | None = None
        self.left = False

    async def __aenter__(self) -> Self:
        self._waiting = asyncio.current_task()
        self._cancelled_before = self._waiting.cancelling() if self._waiting is not None else 0
        if self._parting is not None:
            self._parting.tell(self._gone)
        else:
            self._watch = asyncio.create_task(self._until_left())
            self._watch.add_done_callback(self._seen)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._over = True
        if self._parting is not None:
            self._parting.tell(None)
        elif self._watch is not None:
            self._watch.cancel()
        waiting, self._waiting, self._watch = self._waiting, None, None  # no circle for the collector of garbage
        if not self.left or waiting is None:
            return False
        others = waiting.uncancel() > self._cancelled_before  # somebody else wants it to end too
        return not others and kind is asyncio.CancelledError

    def _seen(self, watch: "asyncio.Task[None]") -> None:
        if not watch.cancelled():
            watch.exception()  # a server that can no longer tell has lost the client too
            self._gone()

    def _gone(self) -> None:
        if not self._over and self._waiting is not None:
            self.left = True
            self._waiting.cancel()

    async def _until_left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            continue
