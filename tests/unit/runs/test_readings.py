"""Many who look at one Run: a wake is one read for all of them, and few reads are under way at once."""

import asyncio
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.runs.app.hub import Hub
from services.runs.app.join_run import join_run
from services.runs.app.readings import AT_ONCE, Readings
from services.runs.app.stream_events import stream_events
from services.runs.domain.run import RunState
from services.runs.ports import Runs
from tests.unit.runs.test_use_cases import Generations

CROWD = 250


class Slow:
    """A store that takes a turn for each read, counts them, and fails if it is told to."""

    def __init__(self, inner: Runs) -> None:
        self._inner = inner
        self.reads = 0
        self.most = 0
        self.under_way = 0
        self.fault: Fault | None = None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        async def call(*given: Any) -> Any:
            self.reads += 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            try:
                await asyncio.sleep(0)
                if self.fault is not None:
                    raise self.fault
                return await method(*given)
            finally:
                self.under_way -= 1

        return call


async def settle(slow: Slow) -> None:
    """Until nobody has read for a while."""
    idle = 0
    while idle < 20:
        await asyncio.sleep(0)
        idle = 0 if slow.under_way else idle + 1


async def test_a_crowd_that_is_woken_reads_once() -> None:
    """SSE-3, SSE-4: hundreds of streams and joins of one Run cost a handful of reads for each event, a few at once,
    and each stream shows every event once."""
    house = Generations()
    run = await house.create()
    slow: Any = Slow(house.runs)
    hub = Hub(slow)
    house.recorder._hub = hub

    async def collect() -> list[int]:
        return [event.sequence async for batch in stream_events(hub, "a", run.id, 0) for event in batch]

    streams = [asyncio.create_task(collect()) for _ in range(CROWD)]
    joins = [asyncio.create_task(join_run(hub, "a", run.id, 60)) for _ in range(CROWD)]
    await settle(slow)
    slow.reads = 0
    await house.advance.submit_pending()
    await settle(slow)
    woken = slow.reads
    await house.end(run)
    shown = await asyncio.gather(*streams)
    ended = await asyncio.gather(*joins)
    assert {run.state for run in ended} == {RunState.SUCCEEDED}
    assert {tuple(sequences) for sequences in shown} == {tuple(range(1, ended[0].last_sequence + 1))}
    assert woken <= 16
    assert slow.most <= AT_ONCE


async def test_who_leaves_takes_nobodys_read_along() -> None:
    """SSE-4: the client that began a shared read may go away; the others are answered."""
    house = Generations()
    run = await house.create()
    slow: Any = Slow(house.runs)
    readings = Readings(slow)
    first = asyncio.create_task(readings.after(run.id, 0))
    second = asyncio.create_task(readings.after(run.id, 0))
    await asyncio.sleep(0)
    first.cancel()
    events, found = await second
    assert [event.sequence for event in events] == [1]
    assert found is not None


async def test_a_read_that_fails_is_told_to_all_and_tried_anew() -> None:
    """SSE-4: a fault of the store reaches everybody who waited for that read; the next one reads again."""
    house = Generations()
    run = await house.create()
    slow: Any = Slow(house.runs)
    readings = Readings(slow)
    slow.fault = Fault.of("governance_backend_down", "away")
    waiting = [asyncio.create_task(readings.after(run.id, 0)) for _ in range(3)]
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(answer, Fault) for answer in answers)
    slow.fault = None
    assert (await readings.after(run.id, 0))[0]


async def test_a_cursor_ahead_is_judged_by_a_read_of_its_own() -> None:
    """SSE-5: a client that has seen the newest event is not refused by a read that began before that event."""
    house = Generations()
    run = await house.create()
    slow: Any = Slow(house.runs)
    hub = Hub(slow)
    before = asyncio.create_task(hub.readings.after(run.id, 1))
    await asyncio.sleep(0)
    await house.advance.submit_pending()
    newest = (await house.now(run)).last_sequence
    with hub.watching(run.id):
        following = asyncio.create_task(anext(stream_events(hub, "a", run.id, newest)))
        await settle(slow)
        assert not following.done()
        following.cancel()
    await before
    with pytest.raises(Fault):
        await anext(stream_events(hub, "a", run.id, newest + 1))
