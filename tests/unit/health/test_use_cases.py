"""What the use-cases of health add to the store."""

from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs

from libs.faults.fault import Fault
from libs.telemetry import metrics
from services.health.app import meters
from services.health.app.changes import Changes
from services.health.app.check_history import CheckHistory
from services.health.app.explain_state import ExplainState
from services.health.app.forget import ForgetOutcomes
from services.health.app.reconcile import Reconcile
from services.health.compose import build
from services.health.domain.breaker import declared, step
from services.health.domain.events import Moment
from services.health.domain.observations import Command, Declared, Failure, Family, Outcome, Success
from services.health.domain.states import Signal, State
from services.health.domain.subjects import Subject
from services.health.domain.thresholds import Thresholds
from services.health.ports import Record
from services.health.settings import Settings
from services.health.store.memory import MemoryHealthStore
from tests.support.worlds import START, SteeredClock, steered_world

SUBJECT = Subject.supply("a/x")


async def opened(clock: SteeredClock) -> MemoryHealthStore:
    """A store with one open Supply."""
    store = MemoryHealthStore()
    breaker, events = declared(SUBJECT.kind, Declared(4, Thresholds()), False, clock.now())
    record = Record(SUBJECT, "a", breaker, False, False, len(events))
    async with store.unit() as unit:
        await unit.add(record, events)
        breaker, events = step(breaker, Command(Signal.FORCED_OPEN, "x"), clock.now())
        await unit.put(record.advanced(breaker, events), events)
    return store


async def test_the_reconciler_moves_what_is_due() -> None:
    """HLT-1: a tick moves an open circuit to probing when its cooldown is over, once, and rings for watchers."""
    clock = SteeredClock()
    store = await opened(clock)
    changes = Changes()
    reconcile = Reconcile(store, clock, changes)
    with changes.listener() as heard:
        clock.advance(59.9)
        await reconcile()
        assert not heard.is_set()
        clock.advance(0.1)
        await reconcile()
        assert heard.is_set()
        await reconcile()
    kinds = [stored.event.kind for stored in await store.events(None, 0, 10)]
    assert kinds == ["declared", "opened", "probing"]


def test_the_page_of_metrics_shows_one_present_state() -> None:
    """HLT-12: every change of state is counted, and the page shows the state after it alone."""
    clock = SteeredClock()
    subject = Subject.supply("metered/x")
    breaker, _ = declared(subject.kind, Declared(4, Thresholds()), False, clock.now())
    _, events = step(breaker, Command(Signal.FORCED_OPEN, "x"), clock.now())
    meters.moved(subject, events)
    page = metrics.PROCESS.page().decode()
    present = [line for line in page.splitlines() if "health_state{" in line and "metered/x" in line]
    assert [line for line in present if line.endswith(" 1.0")] == [line for line in present if "circuit_open" in line]
    assert any("transitions_total" in line and 'to_state="circuit_open"' in line for line in page.splitlines())


async def test_the_running_check_folds_what_is_new() -> None:
    """HLT-12: a history that folds to its state is quiet, also when it grows between checks."""
    clock = SteeredClock()
    store = await opened(clock)
    check = CheckHistory(store)
    await check()
    clock.advance(60)
    await Reconcile(store, clock, Changes())()
    await check()
    assert check.breaches == {}


async def test_the_running_check_notices_a_state_without_a_history(caplog: pytest.LogCaptureFixture) -> None:
    """HLT-12: a state that was changed without an event is told as a breach, once, until it is mended."""
    store = await opened(SteeredClock())
    check = CheckHistory(store)
    await check()
    async with store.unit() as unit:
        record = (await unit.lock(None))[SUBJECT]
        health = replace(record.breaker.health, state=State.HEALTHY)
        await unit.put(replace(record, breaker=structs.replace(record.breaker, health=health)), ())
    await check()
    await check()
    assert list(check.breaches) == [SUBJECT]
    assert caplog.text.count("invariant violated") == 1
    async with store.unit() as unit:
        await unit.put(record, ())
    await check()
    assert check.breaches == {}


async def test_old_outcomes_are_forgotten() -> None:
    """HLT-13: outcomes are kept for a while, so that late repetitions are known, and then deleted."""
    clock = SteeredClock()
    store = MemoryHealthStore()
    outcome = Outcome("one", "a", "a/x", 1, 1, None, START, START)
    async with store.unit() as unit:
        assert await unit.claim([outcome])
    forget = ForgetOutcomes(store, clock, timedelta(days=7).total_seconds())
    clock.advance(86400.0)
    await forget()
    async with store.unit() as unit:
        assert not await unit.claim([outcome])
    clock.advance(7 * 86400.0)
    await forget()
    async with store.unit() as unit:
        assert await unit.claim([outcome])


async def test_the_context_starts_and_stops() -> None:
    """OPS-4: the tickers of a built context run and end; a second stop is harmless."""
    world, _ = steered_world()
    context = build(Settings.from_env({"POINTSMAN_DATABASE_URL": "memory:"}), None, world)
    assert [name for name, _ in context.registrations] == ["pointsman.health.v1.HealthService"]
    await context.migrate()
    await context.start()
    await context.stop()
    await context.stop()


async def fallen_and_risen(clock: SteeredClock) -> MemoryHealthStore:
    """An open Supply: opened at once, probed after a minute, opened again ten seconds later, with a remark between."""
    store = await opened(clock)
    clock.advance(60)
    await Reconcile(store, clock, Changes())()
    clock.advance(10)
    async with store.unit() as unit:
        record = (await unit.lock(None))[SUBJECT]
        late = Success("old", record.breaker.health.epoch - 1, clock.now())
        breaker, ignored = step(record.breaker, late, clock.now())
        failed = Failure("a7", clock.now(), "provider_error", Family.SERVER)
        breaker, reopened = step(breaker, failed, clock.now())
        events = (*ignored, *reopened)
        await unit.put(record.advanced(breaker, events), events)
    return store


@pytest.mark.parametrize(
    ("after_s", "state", "cause"),
    [
        (0.0, State.CIRCUIT_OPEN, "opened"),
        (59.9, State.CIRCUIT_OPEN, "opened"),
        (60.0, State.PROBING, "probing"),
        (69.9, State.PROBING, "probing"),
        (70.0, State.CIRCUIT_OPEN, "reopened"),
        (9999.0, State.CIRCUIT_OPEN, "reopened"),
    ],
)
async def test_the_past_is_folded_up_to_a_time(after_s: float, state: State, cause: str) -> None:
    """HLT-12: the state at any time, its reason and the event that brought it there, from the history alone."""
    explain = ExplainState(await fallen_and_risen(SteeredClock()))
    told = await explain(SUBJECT, Moment(at=START + timedelta(seconds=after_s)))
    assert (told.health.state, told.cause.event.kind) == (state, cause)
    assert told.health.since == told.cause.event.at
    assert told.events[0] == told.cause


async def test_the_past_is_folded_up_to_what_a_decision_saw() -> None:
    """HLT-12: a revision names the state exactly, whenever its event was observed; absent, it is the present."""
    store = await fallen_and_risen(SteeredClock())
    explain = ExplainState(store)
    (record,) = await store.records()
    now = await explain(SUBJECT, Moment())
    assert now.health == record.breaker.health
    assert now.cause.event.attempt_id == "a7"
    seen = await explain(SUBJECT, Moment(revision=record.breaker.health.revision - 1))
    assert seen.health.state is State.PROBING
    assert [stored.event.kind for stored in seen.events] == ["probing", "stale_ignored"]


async def test_there_is_no_past_before_the_first_event() -> None:
    """HLT-12: what was not declared yet, or never, had no state."""
    explain = ExplainState(await opened(SteeredClock()))
    for subject, moment in (
        (SUBJECT, Moment(at=START - timedelta(seconds=1))),
        (Subject.channel("nobody"), Moment()),
    ):
        with pytest.raises(Fault) as refused:
            await explain(subject, moment)
        assert refused.value.code == "not_found"
