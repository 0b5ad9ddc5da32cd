"""What is asked in one moment goes to a backend as one group, and is answered as if it were asked one by one."""

import asyncio

from services.capacity.domain.leases import Lease
from services.capacity.domain.ledger import Gate, Refusal
from services.capacity.domain.pacing import Feedback, Outcome
from tests.contract.capacity.conftest import SUPPLY, Bench, levels, request


async def test_a_release_that_cuts_frees_one_slot_for_its_own_group(ground: Bench) -> None:
    """CAP-7, CAP-1: three in use, one refused for load: two slots are left and taken, also for who asks now."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 9}))
    for name in ("1", "2", "3"):
        assert isinstance(await ground.store.reserve(request(name)), Lease)
    back, asked = await asyncio.gather(
        ground.store.release("1", "h", None, Feedback(Outcome.CONGESTED)), ground.store.reserve(request("4"))
    )
    assert back is not None
    assert asked == Refusal(SUPPLY, Gate.ADAPTIVE, 2, 2)


async def test_a_group_that_does_not_fit_is_admitted_as_far_as_it_does(ground: Bench) -> None:
    """CAP-1: five ask for three slots: the first three have them, the others are refused and change nothing."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 3, "tokens_per_minute": 100}))
    asks = [request(str(number), tokens=10) for number in range(5)]
    answers = await asyncio.gather(*map(ground.store.reserve, asks))
    assert [isinstance(answer, Lease) for answer in answers] == [True, True, True, False, False]
    assert answers[3:] == [Refusal(SUPPLY, Gate.CONCURRENCY, 3, 3)] * 2
    usage = {figure.level.subject: figure.usage for figure in await ground.store.figures()}[SUPPLY]
    assert (usage.in_use, usage.requests, usage.tokens) == (3, 3, 30)


async def test_an_id_asked_again_in_a_group_is_the_same_lease(ground: Bench) -> None:
    """CAP-2: among others that are new, the repeated one takes no second slot and stands in nobody's way."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 3}))
    first = await ground.store.reserve(request("1"))
    again, *others = await asyncio.gather(*(ground.store.reserve(request(name)) for name in ("1", "2", "3")))
    assert again == first
    assert all(isinstance(answer, Lease) for answer in others)
    assert len(await ground.store.leases()) == 3


async def test_a_slot_is_handed_on_within_a_group(ground: Bench) -> None:
    """CAP-10: releases come first, so that what they free is used by who asks in the same moment."""
    await ground.store.apply_levels(1, levels(supply={"concurrency": 2}))
    for name in ("1", "2"):
        await ground.store.reserve(request(name))
    asks = [ground.store.reserve(request(name)) for name in ("3", "4")]
    returns = [ground.store.release(name, "h", None) for name in ("1", "2")]
    _, _, *answers = await asyncio.gather(*returns, *asks)
    assert all(isinstance(answer, Lease) for answer in answers)
    assert [lease.id for lease in await ground.store.leases()] == ["3", "4"]
