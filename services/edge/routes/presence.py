"""Is the client still there? What it waits for is given up when it is not."""

import asyncio
from types import TracebackType
from typing import Any, Self


class Presence:
    """`async with Presence(receive) as presence:` cancels the block when the client leaves, and `left` tells of it.

    One task watches for the whole block; the body of the request must have been read.
    """

    def __init__(self, receive: Any) -> None:
        self._receive = receive
        self._over = False
        self.left = False

    async def __aenter__(self) -> Self:
        self._waiting = asyncio.current_task()
        self._cancelled_before = self._waiting.cancelling() if self._waiting is not None else 0
        self._watch = asyncio.create_task(self._until_left())
        self._watch.add_done_callback(self._gone)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._over = True
        self._watch.cancel()
        if not self.left or self._waiting is None:
            return False
        others = self._waiting.uncancel() > self._cancelled_before  # somebody else wants it to end too
        return not others and kind is asyncio.CancelledError

    def _gone(self, watch: "asyncio.Task[None]") -> None:
        if self._over or watch.cancelled() or self._waiting is None:
            return
        watch.exception()  # a server that can no longer tell has lost the client too
        self.left = True
        self._waiting.cancel()

    async def _until_left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            continue
