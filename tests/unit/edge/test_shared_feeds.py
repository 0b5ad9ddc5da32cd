"""Many readers of one Run: every event once for each, followed once and spelt once for all."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from libs.faults.fault import Fault
from services.edge.app.reveal import Reveal
from services.edge.app.shared_feeds import MOST_KEPT_BYTES, Reader, SharedFeeds
from services.edge.domain.shapes import RunEvent
from services.edge.store.memory import MemoryOwners
from tests.support.waiting import eventually
from tests.support.worlds import SteeredClock


@dataclass
class Told:
    """Implements what feeds need of `ports.Runs`: one Run's events, as they are told."""

    events_so_far: list[RunEvent] = field(default_factory=list)
    followed: int = 0
    following: int = 0
    pages: int = 0
    ends: Exception | None = None
    rests: bool = False
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def tell(self, count: int = 1, size: int = 1) -> None:
        """So many more events, with data of that many characters."""
        async with self.changed:
            for _ in range(count):
                number = len(self.events_so_far) + 1
                told = RunEvent(f"e{number}", "r", number, "node_waiting", {"n": "x" * size}, datetime.now(UTC))
                self.events_so_far.append(told)
            self.changed.notify_all()

    async def end(self, error: Exception | None = None) -> None:
        """The Run is at rest, or what is followed breaks."""
        async with self.changed:
            self.ends, self.rests = error, True
            self.changed.notify_all()

    async def events(self, tenant: str, run_id: str, after: int, size: int) -> list[RunEvent]:
        """See the port."""
        self.pages += 1
        await asyncio.sleep(0)
        return self.events_so_far[after : after + size]

    async def follow(self, tenant: str, run_id: str, after: int) -> AsyncGenerator[list[RunEvent], None]:
        """See the port."""
        self.followed += 1
        self.following += 1
        try:
            while True:
                async with self.changed:
                    await self.changed.wait_for(lambda seen=after: len(self.events_so_far) > seen or self.rests)
                batch = self.events_so_far[after:]
                if batch:
                    yield batch
                    after = batch[-1].sequence
                elif self.ends is not None:
                    raise self.ends
                else:
                    return
        finally:
            self.following -= 1


@asynccontextmanager
async def feeds_over(told: Told) -> AsyncIterator[SharedFeeds]:
    """Feeds that are closed in the end."""
    feeds = SharedFeeds(told, Reveal(MemoryOwners(), SteeredClock()))
    yield feeds
    await feeds.close()


async def read(feeds: SharedFeeds, told: Told, after: int, chance: random.Random | None = None) -> list[int]:
    """The sequences that one reader sees until the end; with chance it dawdles."""
    bell = asyncio.Event()
    seen = []
    with feeds.reading("t", "r", after, len(told.events_so_far), bell) as reader:
        while True:
            bell.clear()
            piece = await reader.take()
            if piece is None:
                return seen
            seen += [int(line[4:]) for line in piece.split(b"\n") if line.startswith(b"id: ")]
            if not piece:
                await bell.wait()
            for _ in range(chance.randrange(20) if chance else 0):
                await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(8))
async def test_every_reader_sees_every_event_once(seed: int) -> None:
    """SSE-3: whenever a reader comes, whatever its cursor and however slow it is, nothing is missing, nothing comes
    twice, and the Run is followed once for all."""
    chance, told = random.Random(seed), Told()
    await told.tell(chance.randrange(250))
    async with feeds_over(told) as feeds:
        cursors, reading = [], []
        for _ in range(30):
            cursors.append(chance.randint(0, len(told.events_so_far)))
            reading.append(asyncio.create_task(read(feeds, told, cursors[-1], random.Random(chance.random()))))
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            if chance.random() < 0.7:
                await told.tell(chance.randrange(1, 4), chance.choice((1, 1, MOST_KEPT_BYTES // 3)))
        await told.end()
        last = len(told.events_so_far)
        for after, seen in zip(cursors, await asyncio.gather(*reading), strict=True):
            assert seen == list(range(after + 1, last + 1))
        assert told.followed == 1
        assert told.following == 0


async def test_one_frame_for_all() -> None:
    """SSE-4: all readers are given the same bytes, and what all have taken is not kept."""
    told = Told()
    async with feeds_over(told) as feeds:
        bells = [asyncio.Event() for _ in range(3)]
        with (
            feeds.reading("t", "r", 0, 0, bells[0]) as one,
            feeds.reading("t", "r", 0, 0, bells[1]) as other,
            feeds.reading("t", "r", 0, 0, bells[2]) as third,
        ):
            assert [await reader.take() for reader in (one, other, third)] == [b"", b"", b""]
            await told.tell()
            await eventually(lambda: all(bell.is_set() for bell in bells))
            first = await one.take()
            assert first is not None
            assert first.startswith(b"id: 1\nevent: node_waiting\ndata: {")
            assert await other.take() is first
            kept = third._feed
            assert kept._frames == [first], "somebody has not taken it"
            assert await third.take() is first
            assert (kept._frames, kept._bytes, kept.newest) == ([], 0, 1)
            assert told.pages == 0


async def test_who_lags_reads_pages() -> None:
    """SSE-4: what is kept for a reader that takes nothing is bounded, whatever comes; it finds the rest in pages."""
    told = Told()
    async with feeds_over(told) as feeds:
        bell = asyncio.Event()
        with feeds.reading("t", "r", 0, 0, bell) as reader:
            for _ in range(30):
                bell.clear()
                await told.tell(10, MOST_KEPT_BYTES // 50)
                await bell.wait()
                assert reader._feed._bytes <= MOST_KEPT_BYTES
            assert told.pages == 0
            seen = b""
            while piece := await reader.take():
                seen += piece
        assert seen.count(b"\nevent: ") == 300
        assert seen.startswith(b"id: 1\n")
        assert 0 < told.pages <= 3, "what is still kept is taken as frames"


async def test_a_feed_that_breaks() -> None:
    """SSE-3: a feed that breaks ends its readers, a bug is told to each; the next reader begins anew."""
    told = Told()
    async with feeds_over(told) as feeds:
        reading = asyncio.create_task(read(feeds, told, 0))
        await eventually(lambda: told.following)
        await told.end(Fault.of("peer_unavailable"))
        assert await reading == []
        told.rests = False
        reading = asyncio.create_task(read(feeds, told, 0))
        await eventually(lambda: told.followed == 2)
        await told.end(KeyError("bug"))
        with pytest.raises(KeyError):
            await reading
        assert not feeds._feeds


async def test_the_last_reader_ends_the_feed() -> None:
    """SSE-1: who leaves frees what its stream held; another reader's goes on."""
    told = Told()

    async def one(reader: Reader, bell: asyncio.Event) -> bytes | None:
        await bell.wait()
        return await reader.take()

    async with feeds_over(told) as feeds:
        bell = asyncio.Event()
        with feeds.reading("t", "r", 0, 0, bell) as stays:
            with feeds.reading("t", "r", 0, 0, asyncio.Event()):
                await eventually(lambda: told.following)
            await told.tell()
            assert await one(stays, bell)
        await eventually(lambda: not told.following)
        assert not feeds._feeds
        assert not feeds._pumps
        with feeds.reading("t", "r", 0, 0, bell):
            await eventually(lambda: told.following)
    assert not told.following, "closing ends what is followed"


async def test_tenants_share_nothing() -> None:
    """AUTH-1: one Run's feed is one tenant's."""
    told = Told()
    async with feeds_over(told) as feeds:
        with feeds.reading("t", "r", 0, 0, asyncio.Event()), feeds.reading("u", "r", 0, 0, asyncio.Event()):
            await eventually(lambda: told.following == 2)
