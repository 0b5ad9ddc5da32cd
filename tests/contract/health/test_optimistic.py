"""Units of work over what is remembered: nothing is stored on a wrong guess, and nothing is lost or counted twice."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from msgspec import structs

from libs.store.database import Database
from services.health.app.changes import Changes
from services.health.app.report_outcome import ReportOutcome
from services.health.domain.breaker import step
from services.health.domain.observations import Command, Outcome, Success
from services.health.domain.states import Signal, State
from services.health.ports import HealthStore, OutcomeUnit, Outdated
from services.health.store.postgres import PostgresHealthStore
from tests.contract.health.conftest import emptied
from tests.contract.health.test_store import CHANNEL, SUPPLY, added
from tests.contract.health.test_store import outcome as failure
from tests.support.worlds import START, SteeredClock


def success(attempt_id: str, epoch: int = 1) -> Outcome:
    """An outcome without a failure."""
    return structs.replace(failure(attempt_id), failure=None, supply_epoch=epoch)


async def count(unit: OutcomeUnit, attempt_id: str) -> None:
    """One success of the Supply."""
    await unit.claim([success(attempt_id)])
    record = (await unit.lock((SUPPLY,)))[SUPPLY]
    breaker, events = step(record.breaker, Success(attempt_id, 1, START), START)
    await unit.put(record.advanced(breaker, events), events)


async def counted(store: HealthStore) -> int:
    """Successes of the Supply in a row, as they are stored."""
    return next(each for each in await store.records() if each.subject == SUPPLY).breaker.tally.successes


@pytest.fixture
async def replicas(pg_module_url: str) -> AsyncIterator[tuple[PostgresHealthStore, PostgresHealthStore]]:
    """Two processes on one database."""
    url = await emptied(pg_module_url)
    made = PostgresHealthStore(Database(url, schema="health")), PostgresHealthStore(Database(url, schema="health"))
    yield made
    for store in made:
        await store.close()


async def test_what_counts_is_stored_from_unit_to_unit(store: HealthStore) -> None:
    """HLT-12: an optimistic unit stores outcome and counts together, and the next goes on from there."""
    await added(store, CHANNEL, SUPPLY)
    for number in range(3):
        async with store.optimistic() as unit:
            await count(unit, str(number))
    assert await counted(store) == 3
    async with store.unit() as whole:
        assert not await whole.claim([success("0"), success("1"), success("2")])


async def test_a_guess_that_another_has_overtaken_stores_nothing(
    replicas: tuple[PostgresHealthStore, PostgresHealthStore],
) -> None:
    """HLT-6, HLT-12: a record that moved on refuses counts that were made without it, and the outcome stays unknown."""
    ours, theirs = replicas
    await added(ours, CHANNEL, SUPPLY)
    async with ours.optimistic() as unit:
        await count(unit, "remembered")
    async with theirs.unit() as whole:
        await count(whole, "in between")
    with pytest.raises(Outdated):
        async with ours.optimistic() as unit:
            await count(unit, "too late")
    assert await counted(ours) == 2
    async with ours.unit() as whole:
        assert await whole.claim([success("too late")])


async def test_a_known_outcome_is_not_counted_by_a_guess(
    replicas: tuple[PostgresHealthStore, PostgresHealthStore],
) -> None:
    """HLT-13: where one Attempt of a group was known, nothing of the group is stored."""
    ours, _ = replicas
    await added(ours, CHANNEL, SUPPLY)
    async with ours.optimistic() as unit:
        await count(unit, "one")
    with pytest.raises(Outdated):
        async with ours.optimistic() as unit:
            await unit.claim([success("two"), success("one")])
    assert await counted(ours) == 1
    async with ours.unit() as whole:
        assert await whole.claim([success("one"), success("two")]) == {"two"}


async def test_more_than_counts_is_left_to_a_whole_unit(
    replicas: tuple[PostgresHealthStore, PostgresHealthStore],
) -> None:
    """HLT-12: a change of state never goes by what is remembered."""
    ours, _ = replicas
    await added(ours, CHANNEL, SUPPLY)
    async with ours.optimistic() as unit:
        record = (await unit.lock((SUPPLY,)))[SUPPLY]
        breaker, events = step(record.breaker, Command(Signal.SWITCHED_OFF, "x"), START)
        with pytest.raises(Outdated):
            await unit.put(record.advanced(breaker, events), events)
    assert all(record.breaker.health.state is State.HEALTHY for record in await ours.records())


async def test_two_replicas_that_count_one_supply_lose_nothing(
    replicas: tuple[PostgresHealthStore, PostgresHealthStore],
) -> None:
    """HLT-12, HLT-13: each outcome is counted once, whoever reports it and however often."""
    await added(replicas[0], CHANNEL, SUPPLY)
    reports = [ReportOutcome(store, SteeredClock(), Changes()) for store in replicas]
    for turn in range(6):
        told = await asyncio.gather(
            *(reports[number % 2](success(f"{turn}-{number}")) for number in range(8)),
            *(reports[1 - number % 2](success(f"{turn}-{number}")) for number in range(4)),
        )
        assert sum(item.recorded for item in told) == 8
    assert await counted(replicas[0]) == 48


async def test_an_operators_word_in_between_is_heeded(
    replicas: tuple[PostgresHealthStore, PostgresHealthStore],
) -> None:
    """HLT-6: a success that was dispatched before another replica switched the Supply off climbs nothing."""
    ours, theirs = replicas
    await added(ours, CHANNEL, SUPPLY)
    report = ReportOutcome(ours, SteeredClock(), Changes())
    await report(success("one"))
    async with theirs.unit() as unit:
        record = (await unit.lock((SUPPLY,)))[SUPPLY]
        breaker, events = step(record.breaker, Command(Signal.SWITCHED_OFF, "x"), START + timedelta(seconds=1))
        await unit.put(record.advanced(breaker, events), events)
    told = await report(success("two"))
    assert [item.event.kind for item in told.events] == ["stale_ignored"]
    assert await counted(ours) == 1
