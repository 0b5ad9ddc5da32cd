"""What the use-cases of capacity add to the store."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from libs.faults.fault import Fault
from services.capacity.app.freed import Freed
from services.capacity.app.release import Release
from services.capacity.app.sweep import Sweep
from services.capacity.app.watch import WatchCapacity
from services.capacity.compose import build
from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.ledger import room_at
from services.capacity.domain.levels import HealthLimit, Kind, Level, Subject, Usage
from services.capacity.domain.pacing import SILENT, Feedback
from services.capacity.settings import Settings
from services.capacity.store.memory import MemoryCapacityStore
from tests.support.worlds import SteeredClock, steered_world

CHANNEL = Subject(Kind.CHANNEL, "a")
SUPPLY = Subject(Kind.SUPPLY, "a/x")
VIDEO = Subject(Kind.GLOBAL, "video")
VIEW = HealthLimit(1, 1, None)


class SlowStore(MemoryCapacityStore):
    """Releases when it is told to, and fails when it is told to."""

    def __init__(self, clock: SteeredClock) -> None:
        super().__init__(clock)
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.fails = False

    async def release(
        self, lease_id: str, holder: str, used_tokens: int | None, feedback: Feedback = SILENT
    ) -> Lease | None:
        """Wait, then release."""
        self.begun.set()
        await self.go_on.wait()
        if self.fails:
            raise Fault.of("governance_backend_down")
        return await super().release(lease_id, holder, used_tokens, feedback)


async def leased(store: MemoryCapacityStore) -> None:
    """One lease of thirty seconds."""
    await store.apply_levels(1, [Level(CHANNEL), Level(SUPPLY, "a", concurrency=1)])
    request = Request("1", "h", "video", "a", "a/x", VIEW, VIEW, 0, timedelta(seconds=30))
    assert isinstance(await store.reserve(request), Lease)


async def test_a_release_survives_its_call() -> None:
    """CAP-8: a release whose caller is cancelled is finished, told to who waits, and waited for at a stop."""
    store = SlowStore(SteeredClock())
    await leased(store)
    freed = Freed()
    release = Release(store, freed)
    with freed.inbox() as inbox:
        call = asyncio.create_task(release("1", "h", None))
        await store.begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert len(await store.leases()) == 1
        store.go_on.set()
        await release.drain()
        assert await store.leases() == []
        assert await inbox.take(1, SteeredClock()) == {VIDEO, CHANNEL, SUPPLY}


async def test_a_failed_release_is_left_to_the_lease(caplog: pytest.LogCaptureFixture) -> None:
    """CAP-8: a release that fails is logged and hides nothing; the lease ends by its time to live."""
    store = SlowStore(SteeredClock())
    await leased(store)
    store.fails = True
    store.go_on.set()
    release = Release(store, Freed())
    with pytest.raises(Fault, match="governance_backend_down"):
        await release("1", "h", None)
    await release.drain()
    assert "ends by its time to live" in caplog.text


async def next_hint(hints: AsyncGenerator[tuple[Subject, ...], None]) -> asyncio.Task[tuple[Subject, ...]]:
    """The next hint, asked for and begun."""
    task: asyncio.Task[tuple[Subject, ...]] = asyncio.ensure_future(anext(hints))
    for _ in range(10):
        await asyncio.sleep(0)
    return task


async def test_what_others_freed_is_found_by_looking() -> None:
    """CAP-10: without any notification a watcher tells within its poll what another process freed."""
    clock = SteeredClock()
    store = MemoryCapacityStore(clock)
    await leased(store)
    watch = WatchCapacity(store, clock, Freed(), 0.5)
    hints = watch()
    hint = await next_hint(hints)
    await store.release("1", "h", None)
    assert not hint.done()
    clock.advance(0.5)
    assert await hint == (SUPPLY,)  # the Channel has no gate: it never was full
    await hints.aclose()


async def test_a_lapsed_lease_is_told() -> None:
    """CAP-2, CAP-10: a slot that comes back because its holder died is a hint like a release."""
    clock = SteeredClock()
    store = MemoryCapacityStore(clock)
    await leased(store)
    freed = Freed()
    hints = WatchCapacity(store, clock, freed, 3600.0)()
    hint = await next_hint(hints)
    clock.advance(30)
    await Sweep(store, freed)()
    assert await hint == (VIDEO, CHANNEL, SUPPLY)
    await hints.aclose()


async def test_the_context_starts_and_stops() -> None:
    """OPS-4: the tickers of a built context run and end; a second stop is harmless."""
    world, _ = steered_world()
    context = build(Settings.from_env({"POINTSMAN_DATABASE_URL": "memory:"}), None, world)
    assert [name for name, _ in context.registrations] == ["pointsman.capacity.v1.CapacityService"]
    await context.migrate()
    await context.start()
    await context.stop()
    await context.stop()


def test_a_window_has_room_when_the_first_of_it_leaves():
    """CAP-1: requests wait for the oldest request, tokens for the oldest of either; without a rate there is no time."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    usage = Usage(requests=3, tokens=90, oldest_request=at, oldest_overuse=at - timedelta(seconds=20))
    plain = Level(Subject(Kind.CHANNEL, "a"))
    assert room_at(plain, usage) is None
    assert room_at(replace(plain, requests_per_minute=3, tokens_per_minute=100), usage) == at + timedelta(seconds=60)
    assert room_at(replace(plain, requests_per_minute=4, tokens_per_minute=90), usage) == at + timedelta(seconds=40)
    assert room_at(replace(plain, requests_per_minute=3), Usage()) is None
