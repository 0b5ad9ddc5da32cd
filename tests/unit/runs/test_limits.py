"""What limits do in every dimension, minutes of reviewers, attempts, money and deadlines, by the value of the node."""

from typing import Any

import pytest

from libs.faults.fault import Fault
from services.runs.domain.deciding import Verdict
from services.runs.domain.run import Decision, Run, RunState
from tests.unit.runs.fakes import OUT_OF_ORDER
from tests.unit.runs.house import House, states
from tests.unit.runs.test_gates import FRAME, fan_out, house, production, shots


def budget(**limits: Any) -> dict[str, Any]:
    """Money enough, and these limits."""
    return {"currency": "CNY", "cost": "100.00", **limits}


def gates(*names: str, **fields: Any) -> list[dict[str, Any]]:
    """Gates that need nothing."""
    return [{"id": name, "kind": "gate", **fields} for name in names]


def all_ended(home: House) -> bool:
    """Whether no Hold is open."""
    budgets = home.budgets
    return set(budgets.minutes) == budgets.looked and set(budgets.held) == budgets.over


async def limit_question(home: House, run: Run) -> Any:
    """The one open question about a limit."""
    (asked,) = [review.question for review in await home.reviews(run) if review.question.kind == "budget"]
    return asked


LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cost": ({"cost": "1.00"}, {"budget": {"currency": "CNY", "amount": "9.00"}}),
    "attempts": ({"attempts": 1}, {"attempts": 5}),
    "review_minutes": ({"review_minutes": 1}, {"review_minutes": 30}),
}
"""By dimension: limits that refuse, and what raises them."""


def limited(dimension: str, value_class: str) -> dict[str, Any]:
    """One node of that value behind a limit in that dimension."""
    node = gates("good")[0] if dimension == "review_minutes" else FRAME
    limits = LIMITS[dimension][0]
    return production({**node, "value_class": value_class}, budget=budget(**limits))


@pytest.mark.parametrize("dimension", LIMITS)
async def test_a_hero_may_ask_for_more_of_everything(dimension: str) -> None:
    """COST-10, HUMAN-3: the request says what was tried, why it stops and what there is instead, stands before the
    rest, and what it names lets the node go on."""
    home = house()
    run = await home.carry(await home.produce(limited(dimension, "hero")))
    asked = await limit_question(home, run)
    assert (asked.dimension, Decision.RAISE_BUDGET in asked.decisions) == (dimension, True)
    assert "Attempts so far: 0 for" in asked.question
    assert "Instead: " in asked.question
    run = await home.decide(run, "raise_budget", comment="worth it", **LIMITS[dimension][1])
    if dimension == "review_minutes":
        run = await home.decide(run, "approve")
    assert (run.state, all_ended(home)) == (RunState.SUCCEEDED, True)
    await home.rebuilds(run)


@pytest.mark.parametrize("dimension", LIMITS)
async def test_a_background_node_is_to_be_simplified_whatever_it_lacks(dimension: str) -> None:
    """COST-10: its review asks how, offers no more of anything, and what is said without it ends the wait."""
    home = house()
    run = await home.carry(await home.produce(limited(dimension, "background")))
    asked = await limit_question(home, run)
    assert "to be simplified" in asked.question
    assert Decision.RAISE_BUDGET not in asked.decisions
    run = await home.decide(run, "waive")
    assert run.state in (RunState.SUCCEEDED, RunState.DEAD_LETTER)


async def test_a_background_node_takes_no_request_from_a_hero() -> None:
    """COST-10: behind one limit each class has a question of its own, and a decision is about those who wait for it."""
    home = house()
    back = {**FRAME, "id": "back", "value_class": "background"}
    hero = {**FRAME, "id": "hero", "value_class": "hero"}
    end = {"id": "end", "kind": "gate", "needs": ["back", "hero"]}
    run = await home.carry(await home.produce(production(back, hero, end, budget=budget(cost="1.00"))))
    assert [review.question.node for review in await home.reviews(run)] == ["hero", "back"]
    run = await home.decide(run, "waive", on="back")
    assert states(run) == {"back": "failed", "hero": "waiting_human", "end": "failed"}
    run = await home.decide(run, "raise_budget", on="hero", budget={"currency": "CNY", "amount": "9.00"})
    assert states(run)["hero"] == "succeeded"


async def test_a_raise_names_what_is_refused() -> None:
    """COST-10, HUMAN-2: money does not mend a want of minutes, and is refused by its field."""
    home = house()
    run = await home.carry(await home.produce(limited("review_minutes", "normal")))
    (review,) = await home.reviews(run)
    money = {"currency": "CNY", "amount": "9.00"}
    for more, pointer in (({}, "/budget"), ({"budget": money}, "/budget"), ({"attempts": 9}, "/budget"),
                          ({"review_minutes": 9, "attempts": 9}, "/budget/attempts")):  # fmt: skip
        with pytest.raises(Fault) as caught:
            await home.people.decide("a", review.id, Verdict(Decision.RAISE_BUDGET, "lena", **more), "")
        assert [error.pointer for error in caught.value.errors] == [pointer]


async def test_attempts_are_reserved_and_booked() -> None:
    """COST-10: a try holds as many as its Task may make and books those that it made, failed ones too; what does not
    fit asks."""
    home = house()
    home.routing.script = {"frames/S01": [OUT_OF_ORDER]}
    document = production(fan_out(shots(3), concurrency=1), budget=budget(attempts=3))
    run = await home.carry(await home.produce(document))
    run = await home.carry(run, seconds=60)
    asked = await limit_question(home, run)
    assert (asked.dimension, "2 of 3 attempts are taken" in asked.cause) == ("attempts", True)
    run = await home.decide(run, "raise_budget", attempts=9)
    run = await home.carry(run, seconds=60)
    assert run.state is RunState.SUCCEEDED
    assert sum(count for _, count in home.budgets.attempts.values()) == run.usage.attempts == 4


@pytest.mark.parametrize("node", [FRAME, gates("good")[0]])
async def test_past_a_budgets_deadline_everything_stops_and_asks(node: dict[str, Any]) -> None:
    """COST-10: neither a Task nor a look is begun after it; moved where budgets are kept, and approved, it goes on."""
    home = house()
    run = await home.produce(production(node, FRAME | {"id": "other", "needs": [node["id"]]}))
    home.budgets.late = {run.budget_id}
    run = await home.carry(run)
    asked = await limit_question(home, run)
    assert (asked.dimension, Decision.RAISE_BUDGET in asked.decisions) == ("deadline", False)
    assert "have more time? Move it with `pointsman budget raise`" in asked.question
    assert home.routing.submitted == []
    home.budgets.late = set()
    run = await home.decide(run, "approve")
    if node["kind"] == "gate":
        run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED


async def test_a_soft_limit_is_told_once_whatever_is_raised() -> None:
    """COST-10: a production goes on at full speed once a person has raised the hard limit; that it is past its soft one
    is not told again."""
    home = house()
    document = production(fan_out(shots(8)), budget={"currency": "CNY", "cost": "5.00", "soft": "3.00"})
    run = await home.carry(await home.produce(document))
    assert run.soft
    run = await home.decide(run, "raise_budget", budget={"currency": "CNY", "amount": "90.00"})
    assert (run.state, run.soft) == (RunState.SUCCEEDED, False)
    assert len(await home.said(run, "budget_soft_limit")) == 1
    assert home.alerts.told.count(("budget_soft_limit", run.budget_id)) == 1
