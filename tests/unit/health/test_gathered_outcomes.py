"""Outcomes that are reported at one moment go together, and each is judged as if alone."""

import asyncio
from contextlib import AbstractAsyncContextManager

from libs.faults.fault import Fault
from libs.faults.registry import Category, Scope
from services.health.app.changes import Changes
from services.health.app.report_outcome import Reported, ReportOutcome
from services.health.domain.breaker import declared
from services.health.domain.observations import Declared, Failed, Outcome
from services.health.domain.states import State
from services.health.domain.subjects import Subject
from services.health.domain.thresholds import Thresholds
from services.health.ports import HealthUnit, Record
from services.health.store.memory import MemoryHealthStore
from tests.support.worlds import START, SteeredClock

BROKEN = Failed(Category.SUPPLY, Scope.SUPPLY, "provider_error", None)


class CountingStore(MemoryHealthStore):
    """Counts units of work."""

    units = 0

    def unit(self) -> AbstractAsyncContextManager[HealthUnit]:
        """See the port."""
        self.units += 1
        return super().unit()


async def known(*supplies: str) -> CountingStore:
    """A store with Channel `a` and these Supplies."""
    store = CountingStore()
    for subject in (Subject.channel("a"), *map(Subject.supply, supplies)):
        breaker, events = declared(subject.kind, Declared(4, Thresholds()), False, START)
        async with store.unit() as unit:
            await unit.add(Record(subject, "a", breaker, False, False, len(events)), events)
    store.units = 0
    return store


def outcome(attempt: str, supply: str = "a/x", failed: Failed | None = BROKEN) -> Outcome:
    """One Attempt's end."""
    return Outcome(attempt, "a", supply, 1, 1, failed, START, START)


async def test_outcomes_of_one_moment_are_one_unit_and_step_in_turn() -> None:
    """HLT-8, HLT-13: three failures that are told at once open the circuit as three told one after the other would."""
    store = await known("a/x")
    report = ReportOutcome(store, SteeredClock(), Changes())
    told = await asyncio.gather(*(report(outcome(f"t{number}")) for number in range(4)))
    assert store.units == 1
    assert [item.recorded for item in told] == [True] * 4
    supply = next(record for record in await store.records() if record.subject == Subject.supply("a/x"))
    assert supply.breaker.health.state is State.CIRCUIT_OPEN
    events = await store.events(Subject.supply("a/x"), 0, 99)
    assert [item.sequence for item in events] == list(range(1, supply.sequence + 1))
    opened = [item for item in told[2].events if item.event.kind == "opened"]
    assert [item.subject for item in opened] == [Subject.supply("a/x")]
    again = await asyncio.gather(*(report(outcome(f"t{number}")) for number in range(4)))
    assert [item.recorded for item in again] == [False] * 4


async def test_one_that_cannot_be_judged_spoils_nothing_for_the_others() -> None:
    """CAT-6, HLT-13: an outcome of a Supply that was never declared is refused by itself, and is not noted."""
    store = await known("a/x")
    report = ReportOutcome(store, SteeredClock(), Changes())
    asked = (outcome("t1"), outcome("t2", "a/unknown"), outcome("t3"))
    first, second, third = await asyncio.gather(*map(report, asked), return_exceptions=True)
    assert isinstance(second, Fault)
    assert second.code == "source_not_configured"
    assert all(isinstance(item, Reported) and item.recorded for item in (first, third))
    async with store.unit() as unit:
        assert await unit.claim([asked[1]])
