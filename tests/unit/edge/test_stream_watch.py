"""One look at the clock for all streams: heartbeats, and keys that no longer hold."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field

from services.edge.app.authenticate import Authenticator, Caller
from services.edge.app.stream_watch import Seat, StreamWatch
from services.edge.domain import keys
from services.edge.domain.keys import Kept, Key, Scope
from services.edge.store.memory import MemoryKeys
from tests.support.waiting import eventually
from tests.support.worlds import START, SteeredClock


class SlowKeys(MemoryKeys):
    """Counts look-ups; those of the keys in `stuck` never answer."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.stuck: set[str] = set()

    async def find(self, key_id: str) -> Kept | None:
        """See the port."""
        self.asked += 1
        if key_id in self.stuck:
            await asyncio.Event().wait()
        return await super().find(key_id)


@dataclass
class Watched:
    """A watch over a steered clock."""

    clock: SteeredClock = field(default_factory=SteeredClock)
    store: SlowKeys = field(default_factory=SlowKeys)

    def __post_init__(self) -> None:
        self.authenticator = Authenticator(self.store, self.clock, 2.0)
        self.watch = StreamWatch(self.authenticator, self.clock, heartbeat_s=15.0, check_s=2.5)

    async def caller(self, key_id: str) -> Caller:
        """Whoever holds a new key of that id."""
        text = keys.spell(key_id, bytes(32))
        await self.store.add(Key(key_id, "t", frozenset({Scope.RUNS}), START), keys.digest(text))
        return await self.authenticator.bearer(f"Bearer {text}")

    async def pass_by(self, seconds: float) -> None:
        """Whoever wants to sleep does; then time passes, and whoever it wakes has its turn."""
        for advanced in (0, seconds):
            self.clock.advance(advanced)
            for _ in range(20):
                await asyncio.sleep(0)


@asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    """It is closed in the end."""
    found = Watched()
    yield found
    await found.watch.close()


def told(seat: Seat) -> tuple[bool, bool, bool]:
    """(its bell has rung, it was silent, its key is revoked)."""
    return seat.bell.is_set(), seat.silent, seat.revoked


async def test_a_thousand_idle_streams_are_one_sleeper() -> None:
    """SSE-4: a thousand idle streams of one key are one task that sleeps, and one look-up in 2.5 s."""
    async with watched() as house:
        caller = await house.caller("01A")
        before, asked = len(asyncio.all_tasks()), house.store.asked
        with ExitStack() as stack:
            seats = [stack.enter_context(house.watch.seat(caller, asyncio.Event())) for _ in range(1000)]
            assert len(asyncio.all_tasks()) == before + 1
            for _ in range(4):
                await house.pass_by(2.5)
            assert house.store.asked == asked + 4
            assert len(asyncio.all_tasks()) == before + 1
            assert not any(seat.bell.is_set() for seat in seats)
        assert not house.watch._spoken
        await house.pass_by(60)
        assert house.store.asked == asked + 4
        assert len(asyncio.all_tasks()) == before, "with no stream open nobody looks at the clock"


async def test_fifteen_seconds_of_silence() -> None:
    """SSE-1: a stream is told after 15 s without a word of its own, not before and not later, and again after 15 s."""
    async with watched() as house:
        caller = await house.caller("01A")
        with (
            house.watch.seat(caller, asyncio.Event()) as talking,
            house.watch.seat(caller, asyncio.Event()) as quiet,
        ):
            await house.pass_by(7.25)
            house.watch.wrote(talking)
            await house.pass_by(7.5)
            assert (told(quiet), told(talking)) == ((False, False, False), (False, False, False))
            await house.pass_by(0.25)
            assert (told(quiet), told(talking)) == ((True, True, False), (False, False, False))
            house.watch.wrote(quiet)
            quiet.bell.clear()
            await house.pass_by(7.25)
            assert (told(quiet), told(talking)) == ((False, False, False), (True, True, False))
            house.watch.wrote(talking)
            await house.pass_by(7.75)
            assert told(quiet) == (True, True, False)


async def test_a_revoked_key_ends_its_streams_alone() -> None:
    """AUTH-1: within five seconds of its revocation, said elsewhere, all streams of a key are told; no others are."""
    async with watched() as house:
        ended, other = await house.caller("01A"), await house.caller("01B")
        with ExitStack() as stack:
            seats = [stack.enter_context(house.watch.seat(ended, asyncio.Event())) for _ in range(3)]
            stays = stack.enter_context(house.watch.seat(other, asyncio.Event()))
            await house.pass_by(2.4)
            await house.store.revoke("01A", house.clock.now())
            for _ in range(10):
                await house.pass_by(0.5)
            assert [told(seat) for seat in seats] == [(True, False, True)] * 3
            assert told(stays) == (False, False, False)
        assert not house.watch._keys


async def test_a_key_that_cannot_be_looked_up_holds_up_no_other() -> None:
    """AUTH-1: while the store is silent about one key, others are looked at in time."""
    async with watched() as house:
        stuck, ended = await house.caller("01A"), await house.caller("01B")
        house.store.stuck.add("01A")
        with house.watch.seat(stuck, asyncio.Event()) as waits, house.watch.seat(ended, asyncio.Event()) as leaves:
            await house.pass_by(2.5)
            await house.store.revoke("01B", house.clock.now())
            await house.pass_by(2.5)
            await eventually(lambda: leaves.revoked)
            assert told(waits) == (False, False, False)
            await house.pass_by(10.0)
            assert told(waits) == (True, True, False), "and its heartbeat comes all the same"


async def test_a_server_that_stops_tells_all() -> None:
    """SSE-2: every stream is told, whatever its key."""
    async with watched() as house:
        with (
            house.watch.seat(await house.caller("01A"), asyncio.Event()) as one,
            house.watch.seat(await house.caller("01B"), asyncio.Event()) as other,
        ):
            assert not house.watch.draining
            house.watch.drain()
            assert house.watch.draining
            assert one.bell.is_set()
            assert other.bell.is_set()
