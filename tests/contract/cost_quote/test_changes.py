"""Limits that several people change at once: nobody's change is lost, and nobody's raise is taken back."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.cost_quote.domain.budgets import Amounts, ChangeAsk
from services.cost_quote.ports import Budgets
from tests.contract.cost_quote.ledgers import cny, declaration


async def fault_of(call: Awaitable[Any]) -> Fault:
    """The fault in which it ends."""
    with pytest.raises(Fault) as caught:
        await call
    return caught.value


async def test_two_who_change_different_dimensions_at_once_both_do(budgets: Budgets) -> None:
    """COST-10: whoever names dimensions changes these alone, as the budget is by then: nobody's raise is lost."""
    await budgets.create(declaration("b", hard=cny(10, 3), soft=cny(8)))
    wider = ChangeAsk("b", "Ann", hard=cny(20), hard_named=("cost",), request_id="r-1")
    await asyncio.gather(
        budgets.change(wider),
        budgets.change(ChangeAsk("b", "Ben", hard=Amounts(attempts=9), hard_named=("attempts",))),
        budgets.change(ChangeAsk("b", "Cem", soft=Amounts(review_minutes=30), soft_named=("review_minutes",))),
    )
    budget = await budgets.get("b")
    assert budget is not None
    assert (budget.hard, budget.soft, budget.revision) == (cny(20, 9), Amounts(8 * 10**9, 0, 30), 3)
    assert await budgets.change(wider) == budget, "a repeat is known by what it named"
    above = ChangeAsk("b", "Ann", soft=cny(21), soft_named=("cost",))
    assert [error.pointer for error in (await fault_of(budgets.change(above))).errors] == ["/soft/cost"]


async def test_of_two_raises_the_lower_takes_nothing_back(budgets: Budgets) -> None:
    """COST-10: a change that only raises leaves what is higher, or no limit at all, and is on record all the same."""
    await budgets.create(declaration("b", hard=cny(10, 3)))
    raises = [ChangeAsk("b", "Ann", hard=cny(cost), hard_named=("cost",), only_raise=True) for cost in (30, 20)]
    for ask in raises:
        assert (await budgets.change(ask)).hard == cny(30, 3)
    assert len(await budgets.entries("b", 0, 9)) == 2
    known = replace(raises[1], request_id="r-1")
    assert (await budgets.change(known), await budgets.change(known))[1].revision == 3
    assert (await budgets.change(ChangeAsk("b", "Ann", hard=cny(0), only_raise=True))).hard == cny()
    assert (await budgets.change(raises[0])).hard == cny(), "nothing is higher than no limit"
