"""How long a Supply makes a clip, and that nothing else is priced and sent."""

from decimal import Decimal
from typing import Any

import pytest

from services.routing.domain.capability import misfits
from services.routing.domain.catalog import Kind, Supply
from services.routing.domain.lengths import as_made
from services.routing.domain.request_facts import facts_of
from tests.unit.routing.dispatch_fakes import stage
from tests.unit.routing.dispatch_offers import catalog, supply

FIXED = {"duration_s": {"min": 4, "max": 12, "lengths": [4, 8, 12]}}


@pytest.mark.parametrize(
    ("capabilities", "asked", "made"),
    [
        ({}, 5, 5),
        ({}, 4.1, 5),
        ({"duration_s": {"min": 4, "max": 15}}, 14.5, 15),
        (FIXED, 4, 4),
        (FIXED, 4.1, 8),
        (FIXED, 9, 12),
    ],
)
def test_a_clip_is_never_shorter_than_asked(capabilities: Any, asked: float, made: int) -> None:
    """COST-1: whole seconds, or the next of the lengths that the Supply declares."""
    given = {"prompt": "x", "duration_s": asked}
    assert as_made(supply("a/clip", capabilities=capabilities), given) == {"prompt": "x", "duration_s": made}


def test_what_is_said_by_nobody_stays_so() -> None:
    """COST-1: a film of clips has no length of its own."""
    given = {"clips": ["a"]}
    assert as_made(supply("a/clip"), given) is given


def test_the_longest_of_the_lengths_is_a_limit() -> None:
    """SEL-5: a Supply of fixed lengths does not fit what is longer than all of them."""
    facts = facts_of(Kind.VIDEO, {"prompt": "x", "duration_s": 9})
    assert [misfit.figures for misfit in misfits({"duration_s": {"lengths": [5, 8]}}, facts)] == [
        "needs 9 s, admits at most 8 s"
    ]
    assert not misfits(FIXED, facts)


@pytest.mark.parametrize(
    ("offered", "cost", "seconds"), [(supply("a/clip"), "1.00", 5), (supply("b/clip", capabilities=FIXED), "1.60", 8)]
)
async def test_the_length_that_is_made_is_quoted_and_sent(offered: Supply, cost: str, seconds: int) -> None:
    """COST-1, COST-6: what a Supply will charge for is what it is compared by and sent."""
    play = stage(offers=catalog(offered))
    play.quotes.rate = Decimal("0.20")
    await play.submit("t", input={"prompt": "x", "duration_s": 4.1})
    await play.work()
    (attempt,) = (await play.task("t")).attempts
    assert (attempt.quote.amount, attempt.input["duration_s"]) == (Decimal(cost), seconds)
