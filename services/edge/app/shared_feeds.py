"""The events of a Run on their way to all who read them here, each made into a frame once (SSE-3, SSE-4).

Laws of this file:
- a Run that somebody reads is followed once in this process, from its newest event when the first reader came; what is
  older each reader reads for itself, in pages;
- a frame is kept until all readers of the Run have taken it, but no more than `MOST_KEPT_BYTES` of them: who lags
  further behind reads pages again, so that nobody holds up another and no reader has memory of its own;
- sequences rise by 1 (EVENT-1): a reader's place is a number, and nothing is missing between a page and a frame;
- what a tenant is about to see is its to read before it is seen, said once for all its readers;
- a feed that breaks ends for its readers: they come back with their cursor.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager

from libs.faults.fault import Fault
from services.edge.app.reveal import Reveal
from services.edge.domain.event_frames import frame
from services.edge.domain.shapes import RunEvent
from services.edge.ports import Runs

PAGE = 100
MOST_KEPT_BYTES = 256 * 1024
Name = tuple[str, str]
"""(tenant, Run)."""


class SharedFeeds:
    """The feeds of this process."""

    def __init__(self, runs: Runs, reveal: Reveal) -> None:
        self._runs = runs
        self._reveal = reveal
        self._feeds: dict[Name, _Feed] = {}
        self._pumps: set[asyncio.Task[None]] = set()

    @contextmanager
    def reading(self, tenant: str, run_id: str, after: int, newest: int, bell: asyncio.Event) -> Iterator["Reader"]:
        """A reader of events after `after`; the bell is rung when there may be more. `newest`: committed by now."""
        name = (tenant, run_id)
        feed = self._feeds.get(name)
        if feed is None:
            feed = self._feeds[name] = self._begun(name, newest)
        reader = Reader(self._runs, self._reveal, name, feed, after, bell)
        feed.enter(reader)
        try:
            yield reader
        finally:
            feed.leave(reader)
            if not feed.readers:
                self._forget(name, feed)

    async def close(self) -> None:
        """Give up what is followed."""
        pumps = tuple(self._pumps)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)

    def _begun(self, name: Name, newest: int) -> "_Feed":
        feed = _Feed(newest)
        feed.pump = asyncio.create_task(self._follow(name, feed), name="events of a run")
        self._pumps.add(feed.pump)
        feed.pump.add_done_callback(lambda pump: self._over(name, feed, pump))
        return feed

    async def _follow(self, name: Name, feed: "_Feed") -> None:
        async with aclosing(self._runs.follow(*name, feed.newest)) as batches:
            async for batch in batches:
                await self._reveal.events(name[0], batch)
                feed.add(batch)

    def _over(self, name: Name, feed: "_Feed", pump: "asyncio.Task[None]") -> None:
        self._pumps.discard(pump)
        if self._feeds.get(name) is feed:
            del self._feeds[name]
        error = None if pump.cancelled() else pump.exception()
        feed.end(None if isinstance(error, Fault) else error)

    def _forget(self, name: Name, feed: "_Feed") -> None:
        if self._feeds.get(name) is feed:
            del self._feeds[name]
        if feed.pump is not None:
            feed.pump.cancel()


class _Feed:
    """What came of one Run since `_first`, as frames, for whoever has not taken it yet."""

    def __init__(self, newest: int) -> None:
        self.readers: set[Reader] = set()
        self.pump: asyncio.Task[None] | None = None
        self.ended = False
        self.error: BaseException | None = None
        self.first = newest
        """The sequence before the first frame that is kept."""
        self._frames: list[bytes] = []
        self._bytes = 0
        self._behind: set[Reader] = set()

    @property
    def newest(self) -> int:
        """The sequence of the last frame, kept or not."""
        return self.first + len(self._frames)

    def enter(self, reader: "Reader") -> None:
        """Somebody reads."""
        self.readers.add(reader)
        self._behind.add(reader)

    def leave(self, reader: "Reader") -> None:
        """Somebody reads no more."""
        self.readers.discard(reader)
        self.caught_up(reader)

    def add(self, batch: Sequence[RunEvent]) -> None:
        """Make frames of what came, and tell all readers."""
        if batch[0].sequence != self.newest + 1:
            raise RuntimeError(f"event {batch[0].sequence} came after event {self.newest}")
        frames = [frame(event) for event in batch]
        self._frames += frames
        self._bytes += sum(map(len, frames))
        while self._bytes > MOST_KEPT_BYTES:
            self._drop(max(1, len(self._frames) // 2))
        self._behind |= self.readers
        self._ring()

    def after(self, sequence: int) -> list[bytes]:
        """The frames behind that event, which is not before `first`."""
        return self._frames[sequence - self.first :]

    def caught_up(self, reader: "Reader") -> None:
        """That reader needs nothing that is kept; nor, perhaps, does any other."""
        self._behind.discard(reader)
        if not self._behind:
            self._drop(len(self._frames))

    def end(self, error: BaseException | None) -> None:
        """Nothing more will come; an error that is no Fault is a bug, and told to every reader."""
        self.ended, self.error = True, error
        self._ring()

    def _drop(self, count: int) -> None:
        self._bytes -= sum(map(len, self._frames[:count]))
        self.first += count
        del self._frames[:count]

    def _ring(self) -> None:
        for reader in self.readers:
            reader.bell.set()


class Reader:
    """One of those who read a Run, and its place."""

    __slots__ = ("_after", "_feed", "_name", "_reveal", "_runs", "bell")

    def __init__(self, runs: Runs, reveal: Reveal, name: Name, feed: _Feed, after: int, bell: asyncio.Event) -> None:
        self._runs = runs
        self._reveal = reveal
        self._name = name
        self._feed = feed
        self._after = after
        self.bell = bell

    async def take(self) -> bytes | None:
        """The frames of what has not been taken yet, in one piece; b"" where there is nothing now, None at the end.

        Faults of a page that cannot be read.
        """
        feed = self._feed
        if self._after < feed.first:
            return await self._page()
        frames = feed.after(self._after)
        self._after += len(frames)
        feed.caught_up(self)
        if frames or not feed.ended:
            return b"".join(frames)
        if feed.error is not None:
            raise feed.error
        return None

    async def _page(self) -> bytes | None:
        events = await self._runs.events(*self._name, self._after, PAGE)
        if not events:  # what was committed is gone: the next request is told so
            return None
        await self._reveal.events(self._name[0], events)
        self._after = events[-1].sequence
        return b"".join(map(frame, events))
