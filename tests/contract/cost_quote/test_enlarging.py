"""Every store of budgets lets a Hold grow, by what it lacks and within every limit."""

from datetime import timedelta

from services.cost_quote.domain.budgets import NOTHING, EnlargeAsk, Moved, Refused, ReleaseAsk, SettleAsk
from services.cost_quote.ports import Budgets
from tests.contract.cost_quote.ledgers import Bench, asked, cny, declaration
from tests.contract.cost_quote.test_budgets import fault_of, figures, taken, tree
from tests.support.worlds import START


async def test_a_hold_grows_by_what_it_lacks_at_every_level_or_at_none(ground: Bench) -> None:
    """COST-9, COST-11: what it lacks is reserved beside it within every limit, and is settled or given back with it."""
    budgets = ground.budgets
    await tree(budgets)
    first = await taken(budgets, "h", "s", 4, attempts=2)
    same = await budgets.enlarge(EnlargeAsk("h", asked(3)))
    assert same == Moved(first.hold)
    larger = await budgets.enlarge(EnlargeAsk("h", asked(9), "its price rose"))
    assert isinstance(larger, Moved)
    assert (larger.hold.amounts, larger.hold.asked) == (cny(9, 2), first.hold.asked)
    assert await figures(budgets, "p", "e", "s") == [(0, 9)] * 3
    over = await budgets.enlarge(EnlargeAsk("h", asked(10.5)))
    assert isinstance(over, Refused)
    assert (over.refusal.budget.id, over.refusal.dimension, over.refusal.asked) == ("s", "cost", cny(1.5))
    assert await figures(budgets, "p", "e", "s") == [(0, 9)] * 3
    assert await taken(budgets, "h", "s", 4, attempts=2) == Moved(larger.hold)
    assert [entry.reason for entry in await budgets.entries("s", 0, 9)] == ["a node", "its price rose"]
    assert (await budgets.settle(SettleAsk("h", asked(8, attempts=2)))).hold.beyond == NOTHING
    assert await figures(budgets, "p", "e", "s") == [(8, 0)] * 3


async def test_what_is_not_held_does_not_grow(budgets: Budgets) -> None:
    """COST-11: neither what was settled, nor what was given back, nor what nobody ever held."""
    await tree(budgets)
    await taken(budgets, "settled", "s", 1)
    await budgets.settle(SettleAsk("settled", asked(1)))
    await taken(budgets, "released", "s", 1)
    await budgets.release(ReleaseAsk("released"))
    await budgets.release(ReleaseAsk("closed"))
    for name in ("settled", "released", "closed"):
        for cost in (0, 2):
            assert (await fault_of(budgets.enlarge(EnlargeAsk(name, asked(cost))))).code == "conflict"
    assert (await fault_of(budgets.enlarge(EnlargeAsk("never", asked(1))))).code == "not_found"
    assert await figures(budgets, "p", "e", "s") == [(1, 0)] * 3


async def test_growing_reaches_a_soft_limit_once_and_heeds_the_deadline(ground: Bench) -> None:
    """COST-10: a soft limit that is reached by growing is told then; after the deadline nothing is added."""
    budgets = ground.budgets
    await budgets.create(declaration("p", soft=cny(3), deadline_at=START + timedelta(seconds=60)))
    await taken(budgets, "h", "p", 1)
    told = await budgets.enlarge(EnlargeAsk("h", asked(4)))
    again = await budgets.enlarge(EnlargeAsk("h", asked(5)))
    assert isinstance(told, Moved)
    assert isinstance(again, Moved)
    assert (told.told, again.told, again.soft) == (("p",), (), ("p",))
    await ground.advance(60)
    late = await budgets.enlarge(EnlargeAsk("h", asked(6)))
    assert isinstance(late, Refused)
    assert late.refusal.dimension == "deadline"
    assert isinstance(await budgets.enlarge(EnlargeAsk("h", asked(5))), Moved)
