"""The port of health's store: one suite, every implementation."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from libs.faults.fault import Fault
from libs.faults.registry import Category, Scope
from libs.store.database import Database
from libs.store.upgrading import differences
from services.health.domain.breaker import declared, step
from services.health.domain.events import Event
from services.health.domain.observations import Command, Declared, Failed, Failure, Family, Outcome, SupplyFailure
from services.health.domain.states import Signal
from services.health.domain.subjects import Kind, Subject
from services.health.domain.thresholds import Thresholds
from services.health.ports import HealthStore, Record, Recorded
from services.health.store.postgres import KEY_SPAN, PostgresHealthStore, horizon
from services.health.store.tables import metadata
from tests.contract.health.conftest import emptied
from tests.support.worlds import START

CHANNEL = Subject.channel("a")
SUPPLY = Subject.supply("a/x")


def fresh(subject: Subject) -> tuple[Record, tuple[Event, ...]]:
    """A newly declared subject."""
    wanted = Declared(4, Thresholds.of(cooldown_s=7.5))
    breaker, events = declared(subject.kind, wanted, False, START)
    return Record(subject, "a", breaker, False, False, len(events)), events


async def added(store: HealthStore, *subjects: Subject) -> None:
    """Store them."""
    async with store.unit() as unit:
        for subject in subjects:
            await unit.add(*fresh(subject))


def outcome(attempt_id: str = "one") -> Outcome:
    """An outcome with a failure."""
    failed = Failed(Category.CAPACITY, Scope.SUPPLY, "rate_limited", 2.5)
    return Outcome(attempt_id, "a", "a/x", 1, 1, failed, START, START)


async def test_a_record_comes_back_as_it_was_stored(store: HealthStore) -> None:
    """HLT-12: thresholds, streaks, windows and sightings survive, times to the microsecond."""
    await added(store, SUPPLY, CHANNEL)
    async with store.unit() as unit:
        records = await unit.lock((SUPPLY, CHANNEL))
        assert list(records) == [CHANNEL, SUPPLY]
        for subject, observation in (
            (CHANNEL, SupplyFailure("one", "a/x", START + timedelta(microseconds=1), "provider_error")),
            (SUPPLY, Failure("one", START, "rate_limited", Family.CAPACITY, 2.5)),
        ):
            breaker, events = step(records[subject].breaker, observation, START + timedelta(seconds=1))
            await unit.put(records[subject].advanced(breaker, events), events)
            records[subject] = records[subject].advanced(breaker, events)
    assert await store.records() == [records[CHANNEL], records[SUPPLY]]
    assert records[CHANNEL].breaker.tally.sightings
    assert records[SUPPLY].breaker.tally.window


async def test_a_unit_is_stored_whole_or_not_at_all(store: HealthStore) -> None:
    """HLT-12: state, event and outcome are one unit of work."""
    await added(store, CHANNEL)

    async def failing() -> None:
        async with store.unit() as unit:
            await unit.claim([outcome()])
            record = (await unit.lock((CHANNEL,)))[CHANNEL]
            breaker, events = step(record.breaker, Command(Signal.SWITCHED_OFF, "x"), START)
            await unit.put(record.advanced(breaker, events), events)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()
    assert (await store.records())[0].sequence == 1
    assert len(await store.events(None, 0, 10)) == 1
    async with store.unit() as unit:
        assert await unit.claim([outcome()])


async def test_a_write_that_follows_nothing_is_refused(store: HealthStore) -> None:
    """HLT-6: an update names the sequence that it follows; what moved on refuses it."""
    await added(store, CHANNEL)
    record, events = fresh(CHANNEL)
    with pytest.raises(Fault, match="revision_conflict"):
        async with store.unit() as unit:
            await unit.put(replace(record, sequence=5), events)
    with pytest.raises(Fault, match="conflict"):
        await added(store, CHANNEL)


async def test_units_on_one_subject_wait_for_each_other(store: HealthStore) -> None:
    """HLT-12: concurrent steps of one subject lose nothing."""
    await added(store, CHANNEL, SUPPLY)

    async def failing(number: int) -> None:
        async with store.unit() as unit:
            records = await unit.lock((SUPPLY, CHANNEL) if number % 2 else (CHANNEL, SUPPLY))
            for record in records.values():
                failure = Failure(str(number), START, "rate_limited", Family.CAPACITY)
                breaker, events = step(
                    structs.replace(record.breaker, thresholds=Thresholds.of(capacity_failures=99)), failure, START
                )
                await unit.put(record.advanced(breaker, events), events)

    await asyncio.gather(*[failing(number) for number in range(8)])
    assert [record.breaker.tally.failures for record in await store.records()] == [8, 8]
    sequences = [stored.sequence for stored in await store.events(CHANNEL, 0, 100)]
    assert sequences == list(range(1, len(sequences) + 1))


async def test_outcomes_are_claimed_once_and_forgotten_in_time(store: HealthStore) -> None:
    """HLT-13: an Attempt's outcome is claimed by one unit; old ones are deleted."""
    async with store.unit() as unit:
        assert await unit.claim([outcome()])
        assert not await unit.claim([outcome()])
    async with store.unit() as unit:
        assert not await unit.claim([outcome()])
        assert await unit.claim([structs.replace(outcome("two"), failure=None, observed_at=START + timedelta(days=1))])
    assert await store.forget_outcomes(START + timedelta(hours=1)) == 1
    async with store.unit() as unit:
        assert await unit.claim([outcome()])
        assert not await unit.claim([outcome("two")])


async def test_open_circuits_are_found_when_their_cooldown_is_over(store: HealthStore) -> None:
    """HLT-1: the reconciler finds what is due, and nothing else."""
    await added(store, CHANNEL, SUPPLY)
    async with store.unit() as unit:
        for record in (await unit.lock(None)).values():
            breaker, events = step(record.breaker, Command(Signal.FORCED_OPEN, "x"), START)
            await unit.put(record.advanced(breaker, events), events)
    assert await store.cooled(START + timedelta(seconds=7.499)) == []
    assert await store.cooled(START + timedelta(seconds=7.5)) == [CHANNEL, SUPPLY]


async def test_the_catalogue_revision_is_remembered(store: HealthStore) -> None:
    """HLT-8: the newest revision told is kept with what it told."""
    async with store.unit() as unit:
        assert await unit.lock_catalog_revision() == 0
        await unit.set_catalog_revision(7)
    async with store.unit() as unit:
        assert await unit.lock_catalog_revision() == 7


async def test_history_reads_by_subject_and_by_position(store: HealthStore) -> None:
    """HLT-12: positions rise over all subjects; a page begins after one."""
    await added(store, CHANNEL, SUPPLY)
    everything = await store.events(None, 0, 10)
    assert [stored.subject for stored in everything] == [CHANNEL, SUPPLY]
    assert await store.events(None, everything[0].position, 10) == everything[1:]
    assert await store.events(SUPPLY, 0, 10) == everything[1:]
    assert await store.events(None, 0, 1) == everything[:1]


async def test_an_event_that_is_committed_late_is_not_passed_over(pg_module_url: str) -> None:
    """HLT-12: positions are drawn in one order and committed in another; a reader of all subjects who goes on from its
    last position misses none, and waits for nobody. Two writers and a reader, each on its own connection."""
    stores = [PostgresHealthStore(Database(await emptied(pg_module_url), schema="health")) for _ in range(3)]
    slow, quick, reading = stores
    read: list[Recorded] = []

    async def read_on() -> None:
        read.extend(await reading.events(None, read[-1].position if read else 0, 10))

    async with slow.unit() as unit:
        await unit.add(*fresh(CHANNEL))  # its position is drawn, and held back until the block ends
        async with quick.unit() as other:
            await other.add(*fresh(SUPPLY))
        assert len(await reading.events(SUPPLY, 0, 10)) == 1  # committed: the history of one subject has it already
        await read_on()
        assert read == []
    await read_on()
    assert [stored.subject for stored in read] == [CHANNEL, SUPPLY]
    async with quick.unit() as other:
        await other.add(*fresh(Subject.supply("a/y")))
    await read_on()
    assert len(read) == 3
    for store in stores:
        await store.close()


async def test_an_event_that_is_undone_holds_nobody_up(pg_module_url: str) -> None:
    """HLT-12: a position that was drawn in vain is passed over once its unit has ended."""
    store = PostgresHealthStore(Database(await emptied(pg_module_url), schema="health"))

    async def in_vain() -> None:
        async with store.unit() as unit:
            await unit.add(*fresh(CHANNEL))
            raise RuntimeError("undone")

    with pytest.raises(RuntimeError):
        await in_vain()
    async with store.unit() as unit:
        await unit.add(*fresh(SUPPLY))
    assert [stored.subject for stored in await store.events(None, 0, 10)] == [SUPPLY]
    await store.close()


def test_the_horizon_lies_before_the_slowest_writer() -> None:
    """HLT-12: announced without their higher bits, positions are still told apart; later ones hold nobody up."""
    assert horizon(0, []) == 0
    assert horizon(7, []) == 7
    assert horizon(7, [5, 3, 7]) == 3
    assert horizon(7, [9]) == 7
    far = 3 * KEY_SPAN + 2
    assert horizon(far, [(far - 4) % KEY_SPAN, (far + 1) % KEY_SPAN]) == far - 4


async def test_history_cannot_be_changed(pg_module_url: str) -> None:
    """HLT-12: events are immutable; the database itself refuses to change or delete one."""
    await emptied(pg_module_url)
    database = Database(pg_module_url, schema="health")
    async with database.unit() as tx:
        await tx.execute(
            text(
                "INSERT INTO health_event (subject_kind, subject_id, sequence, kind, after, epoch, revision,"
                " recovery_successes, reason, attempt_id, at)"
                " VALUES ('channel', 'a', 1, 'declared', 'healthy', 1, 1, 0, '', '', now())"
            )
        )
    for statement in ("UPDATE health_event SET reason = 'x'", "DELETE FROM health_event"):
        with pytest.raises(DBAPIError, match="never changed"):
            async with database.unit() as tx:
                await tx.execute(text(statement))
    await database.close()


async def test_the_tables_are_as_declared(pg_module_url: str) -> None:
    """OPS-7: the migrations lead to the tables that the code declares."""
    await emptied(pg_module_url)
    assert await differences(pg_module_url, schema="health", metadata=metadata) == []


def test_kinds_are_locked_channels_first() -> None:
    """HLT-12: the order of subjects is the order of locks."""
    assert sorted([SUPPLY, CHANNEL]) == [CHANNEL, SUPPLY]
    assert Kind.CHANNEL < Kind.SUPPLY
