"""The crash sweep at its most delicate places; `make sweep` kills at every one."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.e2e.sweep.playing import NotReached, Place, Theatre, theatre

PLACES = (
    "delivered/capacity.Reserve.1/after",  # a slot without an Attempt
    "delivered/cost_quote.hold.1/after",  # money set aside for a Task that nobody has sent
    "delivered/routing.save.1/after",  # an intent that was never sent
    "switched/provider.POST.2/after",  # taken by the provider, unknown to us, and no Attempt is left
    "delivered/routing.save.3/after",  # delivered; its slot kept, health owed
    "cancelled/provider.DELETE.1/after",  # stopped there, running here
    "produced/cost_quote.hold.1/after",  # money set aside for a node that does not know of it
    "produced/runs.save.5/after",  # its Hold on record, its Task with nobody
)


@pytest.fixture(scope="module")
def house() -> Iterator[Theatre]:
    """One theatre for the module."""
    with asyncio.Runner() as runner:
        context = theatre()
        yield runner.run(context.__aenter__())
        runner.run(context.__aexit__(None, None, None))


async def test_a_product_killed_at_an_effect_goes_on_as_if_it_had_not_been(house: Theatre) -> None:
    """VER-5, VER-7, ATT-5, ATT-7, CAP-3, HLT-13, COST-11, STEER-1: killed with SIGKILL at an effect and started
    normally, everything ends honestly: no token submitted twice, no Task or Attempt open, no slot kept, every outcome
    told to health once; the ledger and the providers tell one sum, and a production's steering input is taken once."""
    await asyncio.gather(*(house.play(Place.of(words)) for words in PLACES))


async def test_a_place_that_does_not_come_is_told(house: Theatre) -> None:
    """VER-5: a sweep that killed nobody proves nothing, so a process that lives through its scene fails the place."""
    with pytest.raises(NotReached):
        await house.play(Place.of("delivered/provider.DELETE.1/before"))
