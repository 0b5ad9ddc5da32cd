"""The port of capacity's store: one suite, every backend (CAP-5)."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from libs.faults.fault import Fault
from services.capacity.domain.leases import Lease
from services.capacity.domain.ledger import Gate, Refusal
from services.capacity.domain.levels import HealthLimit, Usage
from services.capacity.domain.pacing import Feedback, Outcome
from tests.contract.capacity.conftest import (
    CHANNEL,
    OTHER,
    SUPPLY,
    UNLIMITED,
    VIDEO,
    Bench,
    levels,
    request,
)

MINUTE = timedelta(seconds=60)


async def usage(ground: Bench) -> dict[str, Usage]:
    """What is used, by level id."""
    return {figure.level.subject.id: figure.usage for figure in await ground.store.figures()}


async def refused(ground: Bench, lease_id: str, **changes: object) -> Refusal:
    """A reservation that must be refused, and must change nothing."""
    before = await consumed(ground)
    outcome = await ground.store.reserve(request(lease_id, **changes))
    assert isinstance(outcome, Refusal)
    assert await consumed(ground) == before
    return outcome


async def consumed(ground: Bench) -> object:
    """Everything that a reservation consumes. (What health it teaches is no consumption.)"""
    used = {name: replace(figures, in_use_current_epoch=0) for name, figures in (await usage(ground)).items()}
    return used, await ground.store.leases()


async def admitted(ground: Bench, lease_id: str, **changes: object) -> Lease:
    """A reservation that must be admitted."""
    outcome = await ground.store.reserve(request(lease_id, **changes))
    assert isinstance(outcome, Lease), outcome
    return outcome


async def test_both_slots_or_neither(ground: Bench) -> None:
    """CAP-1: a full Channel refuses a Supply with room, and the Supply keeps its room."""
    await ground.store.apply_levels(1, levels(channel={"concurrency": 2}, supply={"concurrency": 2}))
    await admitted(ground, "1")
    await admitted(ground, "2", supply_id="a/y")
    assert await refused(ground, "3") == Refusal(CHANNEL, Gate.CONCURRENCY, 2, 2)
    await ground.store.release("2", "h", None)
    await admitted(ground, "3")
    assert await refused(ground, "4", supply_id="a/x") == Refusal(CHANNEL, Gate.CONCURRENCY, 2, 2)
    used = await usage(ground)
    assert (used["a"].in_use, used["a/x"].in_use, used["a/y"].in_use) == (2, 2, 0)


async def test_every_level_has_a_concurrency_gate(ground: Bench) -> None:
    """CAP-1: a whole kind, a Channel and a Supply each refuse by name; 0 is no gate."""
    for name, subject, limit in (("kind", VIDEO, 1), ("channel", CHANNEL, 2), ("supply", SUPPLY, 3)):
        await ground.store.apply_levels(1, levels(**{name: {"concurrency": limit}}))
        taken = [await admitted(ground, f"{name}-{number}") for number in range(limit)]
        assert await refused(ground, "more") == Refusal(subject, Gate.CONCURRENCY, limit, limit)
        for lease in taken:
            assert await ground.store.release(lease.id, "h", None)
    await ground.store.apply_levels(1, levels())
    for number in range(20):
        await admitted(ground, f"free-{number}")


async def test_a_whole_kind_counts_over_channels(ground: Bench) -> None:
    """CAP-1: the level of a kind counts its leases wherever they are, and only its own."""
    await ground.store.apply_levels(1, levels(kind={"concurrency": 1}))
    await admitted(ground, "1", supply_id="a/y")
    await refused(ground, "2")
    await admitted(ground, "3", kind="image")


async def test_requests_a_minute_open_when_the_oldest_leaves(ground: Bench) -> None:
    """CAP-1: a window refuses with the earliest time at which a retry can succeed; a release does not open it."""
    await ground.store.apply_levels(1, levels(channel={"requests_per_minute": 2}))
    first = await admitted(ground, "1")
    await ground.advance(10)
    await admitted(ground, "2")
    await ground.store.release("1", "h", None)
    await ground.advance(20)
    refusal = await refused(ground, "3")
    assert refusal == Refusal(CHANNEL, Gate.REQUESTS, 2, 2, first.reserved_at + MINUTE)
    await ground.advance(29.999999)
    await refused(ground, "3")
    await ground.advance(0.000001)
    await admitted(ground, "3")


async def test_tokens_a_minute_wait_until_enough_left(ground: Bench) -> None:
    """CAP-1: the hint of a token window is when enough tokens have left it."""
    await ground.store.apply_levels(1, levels(supply={"tokens_per_minute": 100}))
    await admitted(ground, "1", tokens=30)
    await ground.advance(5)
    second = await admitted(ground, "2", tokens=60)
    refusal = await refused(ground, "3", tokens=50)
    assert refusal == Refusal(SUPPLY, Gate.TOKENS, 100, 90, second.reserved_at + MINUTE)
    await admitted(ground, "4", tokens=10)
    with pytest.raises(Fault, match="validation_failed"):
        await ground.store.reserve(request("5", tokens=101))


async def test_settling_corrects_the_window(ground: Bench) -> None:
    """CAP-6: tokens really used replace those reserved; over-use keeps the window shut until it has left."""
    await ground.store.apply_levels(1, levels(supply={"tokens_per_minute": 100}))
    first = await admitted(ground, "1", tokens=10)
    await ground.store.release("1", "h", 150)
    refusal = await refused(ground, "2", tokens=1)
    assert refusal == Refusal(SUPPLY, Gate.TOKENS, 100, 150, first.reserved_at + MINUTE)


async def test_over_use_of_a_long_call_is_carried(ground: Bench) -> None:
    """CAP-6: over-use that becomes known after the window of its reservation counts in the window that is open then."""
    await ground.store.apply_levels(1, levels(supply={"tokens_per_minute": 100}))
    await admitted(ground, "1", tokens=10, ttl=timedelta(minutes=10))
    await ground.advance(61)
    await ground.store.release("1", "h", 105)
    assert (await usage(ground))["a/x"].tokens == 95
    refusal = await refused(ground, "2", tokens=6)
    assert refusal == Refusal(SUPPLY, Gate.TOKENS, 100, 95, ground.clock.now() + MINUTE)
    await ground.advance(60)
    await admitted(ground, "2", tokens=6)


async def test_congestion_cuts_once_and_success_brings_back(ground: Bench) -> None:
    """CAP-4, CAP-7: 429s of one burst cut once, in the same decision as every gate; successes bring the slots back."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 4}))
    for name in "1234":
        await admitted(ground, name)
    await ground.advance(1)
    for name in "123":
        await ground.store.release(name, "h", None, Feedback(Outcome.CONGESTED))
    await admitted(ground, "5")
    assert await refused(ground, "6") == Refusal(SUPPLY, Gate.ADAPTIVE, 2, 2)
    figure = next(figure for figure in await ground.store.figures() if figure.level.subject == SUPPLY)
    assert (figure.level.pace.limit, figure.level.effective) == (2800, 2)
    await ground.advance(1)
    for number in range(12):
        await ground.store.release("4" if number == 0 else f"more-{number - 1}", "h", None, Feedback(Outcome.SUCCEEDED))
        await admitted(ground, f"more-{number}")
    for name in ("7", "8"):
        await admitted(ground, name)
    assert (await refused(ground, "9")).gate is Gate.CONCURRENCY


async def test_retry_after_freezes_until_its_time(ground: Bench) -> None:
    """CAP-7: a 429 with Retry-After refuses until that time and cuts nothing; who held nothing says nothing."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 4}))
    await admitted(ground, "1")
    asked = Feedback(Outcome.CONGESTED, timedelta(seconds=20))
    assert await ground.store.release("1", "other", None, asked) is None
    await admitted(ground, "2")
    await ground.store.release("1", "h", None, asked)
    until = ground.clock.now() + timedelta(seconds=20)
    assert await refused(ground, "3") == Refusal(SUPPLY, Gate.FROZEN, 0, 0, until)
    await ground.advance(19.999999)
    await refused(ground, "3")
    await ground.advance(0.000001)
    await admitted(ground, "3")


async def test_the_binding_gate_is_the_one_that_time_does_not_open(ground: Bench) -> None:
    """CAP-1: of several closed gates the one without a time is told, with the latest time of the others."""
    figures = {"concurrency": 1, "requests_per_minute": 1}
    await ground.store.apply_levels(1, levels(channel={"requests_per_minute": 1}, supply=figures))
    lease = await admitted(ground, "1")
    assert await refused(ground, "2") == Refusal(SUPPLY, Gate.CONCURRENCY, 1, 1, lease.reserved_at + MINUTE)


async def test_reserving_twice_with_one_id_is_one_lease(ground: Bench) -> None:
    """CAP-2: an id is idempotent while it holds, also when all gates are shut; it never holds twice."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 1}))
    lease = await admitted(ground, "1")
    await ground.advance(1)
    assert await ground.store.reserve(request("1")) == lease
    assert (await usage(ground))["a/x"].in_use == 1
    with pytest.raises(Fault, match="lease_not_held"):
        await ground.store.reserve(request("1", holder="other"))
    with pytest.raises(Fault, match="already_exists"):
        await ground.store.reserve(request("1", supply_id="a/y"))
    await ground.store.release("1", "h", None)
    with pytest.raises(Fault, match="lease_expired"):
        await ground.store.reserve(request("1"))


async def test_many_reservations_of_one_id_at_once_are_one_lease(ground: Bench) -> None:
    """CAP-2: concurrent repetitions get the same lease."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 1}))
    leases = await asyncio.gather(*[ground.store.reserve(request("1")) for _ in range(8)])
    assert len(set(leases)) == 1
    assert (await usage(ground))["a"].in_use == 1


async def test_only_the_holder_renews_and_releases(ground: Bench) -> None:
    """CAP-2: another's lease can neither be renewed nor given back."""
    await ground.store.apply_levels(1, levels())
    await admitted(ground, "1")
    renewal = await ground.store.renew("other", ("1",), MINUTE)
    assert (renewal.renewed, renewal.lost) == ((), ("1",))
    assert await ground.store.release("1", "other", None) is None
    assert (await usage(ground))["a"].in_use == 1


async def test_a_renewed_lease_lives_on_and_a_lapsed_one_never_does(ground: Bench) -> None:
    """CAP-2: renewal counts from now and is batched; what lapsed is lost, and cannot be released."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 2}))
    await admitted(ground, "1")
    await admitted(ground, "2")
    await ground.advance(20)
    renewal = await ground.store.renew("h", ("2", "nobody", "1"), timedelta(seconds=15))
    assert (renewal.renewed, renewal.lost) == (("2", "1"), ("nobody",))
    await ground.advance(14.999999)
    assert (await usage(ground))["a/x"].in_use == 2
    await ground.store.renew("h", ("2",), MINUTE)
    await ground.advance(0.000001)
    assert (await usage(ground))["a/x"].in_use == 1
    assert (await ground.store.renew("h", ("1", "2"), MINUTE)).lost == ("1",)
    assert await ground.store.release("1", "h", None) is None
    with pytest.raises(Fault, match="lease_expired"):
        await ground.store.reserve(request("1"))


async def test_a_lapsed_slot_is_free_at_once_and_stays_lost(ground: Bench) -> None:
    """CAP-2: a slot whose holder died comes back with the lease's end, without a sweep; the dead cannot return."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 1}))
    await admitted(ground, "1")
    await ground.advance(30)
    await admitted(ground, "2")
    assert (await ground.store.renew("h", ("1", "2"), MINUTE)).lost == ("1",)
    assert [lease.id for lease in await ground.store.leases()] == ["2"]


async def test_releasing_twice_frees_once(ground: Bench) -> None:
    """CAP-2, CAP-8: the second release says so and frees nothing more."""
    await ground.store.apply_levels(1, levels())
    await admitted(ground, "1")
    await admitted(ground, "2")
    ended = await asyncio.gather(*[ground.store.release("1", "h", None) for _ in range(4)])
    assert sorted(lease is not None for lease in ended) == [False, False, False, True]
    assert (await usage(ground))["a"].in_use == 1


async def test_health_shrinks_the_slots(ground: Bench) -> None:
    """CAP-4: effective = min(configured, what health allows), in the same decision."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 4}))
    probing = HealthLimit(2, 5, 1)
    await admitted(ground, "1", supply_health=probing)
    assert await refused(ground, "2", supply_health=probing) == Refusal(SUPPLY, Gate.HEALTH, 1, 1)
    figure = next(figure for figure in await ground.store.figures() if figure.level.subject == SUPPLY)
    assert (figure.level.concurrency, figure.level.effective) == (4, 1)
    opened = HealthLimit(3, 6, 0)
    assert await refused(ground, "2", supply_health=opened) == Refusal(SUPPLY, Gate.HEALTH, 0, 0)


async def test_old_work_does_not_block_the_probe(ground: Bench) -> None:
    """CAP-4a: leases from before the present epoch count against the configured limit, not against health's."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 4}))
    for number in range(3):
        await admitted(ground, f"old-{number}")
    probing = HealthLimit(2, 2, 1)
    await admitted(ground, "probe", supply_health=probing)
    used = (await usage(ground))["a/x"]
    assert (used.in_use, used.in_use_current_epoch) == (4, 1)
    await ground.store.release("probe", "h", None)
    await ground.store.hear({SUPPLY: HealthLimit(2, 3, 3)})
    await admitted(ground, "new", supply_health=HealthLimit(2, 3, 3))
    refusal = await refused(ground, "more", supply_health=HealthLimit(2, 3, 3))
    assert refusal == Refusal(SUPPLY, Gate.CONCURRENCY, 4, 4)


async def test_a_dead_prober_gives_the_probe_back(ground: Bench) -> None:
    """HLT-7: the probe slot is a lease; whoever dies with it gives it back within its time to live."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 4}))
    probing = HealthLimit(2, 2, 1)
    await admitted(ground, "dies", supply_health=probing)
    await ground.advance(29.999999)
    await refused(ground, "next", supply_health=probing)
    await ground.advance(0.000001)
    await admitted(ground, "next", supply_health=probing)


async def test_health_can_close_a_whole_kind(ground: Bench) -> None:
    """CAP-4: a limit by health holds on a whole kind that has no gate of its own, alone and in a group."""
    await ground.store.apply_levels(1, levels(kind={}))
    await ground.store.hear({VIDEO: HealthLimit(1, 1, 0)})
    assert await refused(ground, "1") == Refusal(VIDEO, Gate.HEALTH, 0, 0)
    outcomes = await asyncio.gather(*[ground.store.reserve(request(name)) for name in "234"])
    assert outcomes == [Refusal(VIDEO, Gate.HEALTH, 0, 0)] * 3
    await ground.store.hear({VIDEO: HealthLimit(1, 2, None)})
    await admitted(ground, "1")


async def test_an_old_view_of_health_is_refused(ground: Bench) -> None:
    """CAP-4, HLT-6: the newest revision heard wins however it arrives; an older view is `stale_health`."""
    await ground.store.apply_levels(1, levels())
    await ground.store.hear({CHANNEL: HealthLimit(1, 4, None)})
    assert await refused(ground, "1", channel_health=HealthLimit(1, 3, None)) == Refusal(
        CHANNEL, Gate.STALE_HEALTH, 4, 3
    )
    await admitted(ground, "1", channel_health=HealthLimit(2, 5, None))
    await ground.store.hear({CHANNEL: HealthLimit(1, 4, 0)})
    await admitted(ground, "2", channel_health=HealthLimit(2, 5, None))
    assert (await refused(ground, "3", channel_health=HealthLimit(1, 4, None))).gate is Gate.STALE_HEALTH


async def test_a_refusal_still_teaches_health(ground: Bench) -> None:
    """CAP-4: what a refused caller knew of health is believed from then on."""
    await ground.store.apply_levels(1, levels(channel={"concurrency": 1}))
    await admitted(ground, "1")
    await refused(ground, "2", supply_health=HealthLimit(2, 9, 1))
    figures = {figure.level.subject: figure.level.health for figure in await ground.store.figures()}
    assert figures[SUPPLY] == HealthLimit(2, 9, 1)


async def test_levels_are_declarative(ground: Bench) -> None:
    """CAP-1: an older catalogue is ignored, the absent are retired with their leases counting on, health is kept."""
    assert await ground.store.apply_levels(5, levels(kind={"concurrency": 9})) == 5
    assert await ground.store.apply_levels(4, []) == 5
    await admitted(ground, "1", supply_health=HealthLimit(3, 7, 2))
    await ground.store.apply_levels(6, [level for level in levels() if level.subject != SUPPLY])
    assert [figure.level.subject for figure in await ground.store.figures()] == [CHANNEL, OTHER]
    with pytest.raises(Fault, match="source_not_configured"):
        await ground.store.reserve(request("2"))
    assert await ground.store.reserve(request("1", supply_health=HealthLimit(3, 7, 2)))
    assert (await usage(ground))["a"].in_use == 1
    await ground.store.apply_levels(7, levels(supply={"concurrency": 2}))
    figure = next(figure for figure in await ground.store.figures() if figure.level.subject == SUPPLY)
    assert figure.level.health == HealthLimit(3, 7, 2)
    assert figure.usage.in_use == 1
    assert await ground.store.catalog_revision() == 7


async def test_an_undeclared_name_is_an_assembly_fault(ground: Bench) -> None:
    """CAT-6: an unknown Channel or Supply, or a Supply of another Channel, is named and never waits."""
    with pytest.raises(Fault, match="source_not_configured"):
        await ground.store.reserve(request("1"))
    await ground.store.apply_levels(1, levels())
    with pytest.raises(Fault, match="source_not_configured"):
        await ground.store.reserve(request("1", supply_id="a/z"))
    await ground.store.hear({SUPPLY: UNLIMITED})


async def test_the_sweep_tells_what_became_free_and_tidies(ground: Bench) -> None:
    """CAP-10: lapsed leases are told once; windows keep what they need for a minute."""
    await ground.store.apply_levels(1, levels(channel={"requests_per_minute": 5}))
    await admitted(ground, "1")
    assert await ground.store.sweep() == frozenset()
    await ground.advance(30)
    assert await ground.store.sweep() == {VIDEO, CHANNEL, SUPPLY}
    assert await ground.store.sweep() == frozenset()
    await ground.advance(29)
    await ground.store.sweep()
    assert (await usage(ground))["a"].requests == 1
    await ground.advance(91.5)
    await ground.store.sweep()
    await admitted(ground, "1")


async def test_twenty_queued_against_sixteen_slots(ground: Bench) -> None:
    """CAP-10: 20 queued, A 5 + B 8 + C 3 free: 16 run at once, 4 wait, and each release lets one more in."""
    free = {"a/x": 5, "a/y": 8, "b/z": 3}
    declared = [level for level in levels() if level.subject == CHANNEL]
    declared += [type(declared[0])(type(CHANNEL)(CHANNEL.kind, "b"))]
    declared += [
        type(declared[0])(type(SUPPLY)(SUPPLY.kind, name), name[0], concurrency=slots) for name, slots in free.items()
    ]
    await ground.store.apply_levels(1, declared)

    async def dispatch(task: str) -> str | None:
        for supply in free:
            outcome = await ground.store.reserve(request(f"{task} {supply}", channel_id=supply[0], supply_id=supply))
            if isinstance(outcome, Lease):
                return outcome.id
        return None

    tasks = [f"task-{number}" for number in range(20)]
    running = [held for held in await asyncio.gather(*map(dispatch, tasks)) if held]
    assert len(running) == 16
    waiting = [task for task in tasks if not any(held.startswith(f"{task} ") for held in running)]
    assert len(waiting) == 4
    for task, held in zip(waiting, running, strict=False):
        assert await dispatch(task) is None
        await ground.store.release(held, "h", None)
        assert await dispatch(task)
    assert {name: used.in_use for name, used in (await usage(ground)).items() if name in free} == free
