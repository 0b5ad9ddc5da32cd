"""Tells the watchers of this process that something changed. A hint: a watcher looks again by itself soon anyway."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from libs.kernel.clock import Clock


class Changes:
    """A bell that every watcher hears. Belongs to one event loop."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Event] = set()

    def ring(self) -> None:
        """Something changed."""
        for listener in self._listeners:
            listener.set()

    @contextmanager
    def listener(self) -> Iterator[asyncio.Event]:
        """An event that is set at every ring while the block runs; whoever has heard it clears it."""
        heard = asyncio.Event()
        self._listeners.add(heard)
        try:
            yield heard
        finally:
            self._listeners.discard(heard)


async def heard_within(heard: asyncio.Event, seconds: float, clock: Clock) -> None:
    """Return when `heard` is set or the time is over, and clear it."""
    waits = [asyncio.ensure_future(heard.wait()), asyncio.ensure_future(clock.sleep(seconds))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    heard.clear()
