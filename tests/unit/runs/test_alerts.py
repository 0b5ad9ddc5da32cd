"""What operators are told of: money that may be lost, and what stands still without a reason."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.runs.app.check_standing import Standing
from services.runs.domain.engine import RECOVERY
from services.runs.domain.run import AT_WORK, ENDED_NODES, WAITING_TO_START, NodeState, RunState
from services.runs.domain.standing import stuck
from services.runs.domain.task_view import TaskView
from tests.unit.runs.fakes import DOUBTED
from tests.unit.runs.house import House
from tests.unit.runs.test_gates import FRAME, GATE, house, production


def told(home: House, kind: str) -> list[str]:
    """The subjects of one kind of alert."""
    return [subject for what, subject in home.alerts.told if what == kind]


def standing(home: House) -> Standing:
    """What looks at Runs that were silent for a quarter of an hour."""
    return Standing(home.runs, home.routing, home.alerts, home.plans, home.world, timedelta(minutes=15))


@pytest.mark.parametrize("decision", ["approve", "stop"])
async def test_a_possible_double_charge_is_told(decision: str) -> None:
    """COST-12, RUN-6, OPS-6: whoever decides on a charge in doubt, it is a cost anomaly on record and an alert."""
    home = house()
    home.routing.script = {"frame": [DOUBTED]}
    run = await home.carry(await home.produce(production(FRAME)))
    assert told(home, "cost_anomaly") == []
    hold = run.nodes["frame"].hold
    assert hold is not None
    await home.decide(run, decision)
    assert told(home, "cost_anomaly") == [hold.budget_id]


async def test_what_costs_more_than_was_held_is_told() -> None:
    """COST-12, OPS-6: a settlement beyond its Hold is a cost anomaly of the budget that bears it."""
    home = house()
    home.routing.answering = False
    run = await home.carry(await home.produce(production(FRAME)))
    home.answer_all(run)
    task_id = run.nodes["frame"].task_id
    view = home.routing.views[task_id]
    dear = Money("CNY", Decimal("9.00"))
    attempts = tuple(replace(attempt, cost=dear) for attempt in view.attempts)
    home.routing.views[task_id] = replace(view, cost=dear, attempts=attempts)
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    assert told(home, "cost_anomaly") == [f"{run.budget_id}/frame"]
    assert home.budgets.spent == {run.budget_id: Decimal("9.00")}


async def test_a_review_that_the_last_addressee_lets_lie_is_told() -> None:
    """HUMAN-1, OPS-6: after the reviewer and the deputy the operator is asked; whose own deadline passes is told."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, {**GATE, "deadline": "4h", "deputy": "lead"})))
    for _ in range(2):
        run = await home.carry(run, seconds=4 * 3600)
    assert told(home, "stuck_state") == []
    run = await home.carry(run, seconds=4 * 3600)
    (review,) = await home.reviews(run)
    assert told(home, "stuck_state") == [review.id]


def test_every_state_that_is_no_end_has_one_rule() -> None:
    """RUN-6: whatever a crash leaves behind is carried on by exactly one rule, or is an end."""
    assert set(RECOVERY) | ENDED_NODES == set(NodeState)
    assert not set(RECOVERY) & ENDED_NODES
    assert AT_WORK | WAITING_TO_START | {NodeState.WAITING_HUMAN, NodeState.COMPENSATING} == set(RECOVERY)


async def test_what_waits_rightly_is_not_stuck() -> None:
    """RUN-6, OPS-6: a day with a provider, or on a person's desk, is no alert."""
    home = house()
    home.routing.answering = False
    await home.carry(await home.produce(production(FRAME, GATE)))
    await home.carry(await home.produce(production({"id": "go", "kind": "gate", "deadline": "72h"})))
    await home.carry(await home.create())
    for task_id in home.routing.submitted:
        home.routing.views[task_id] = TaskView(task_id, 2, "running", None)
    home.clock.advance(86_400)
    await standing(home).look()
    assert told(home, "stuck_state") == []


async def test_what_is_due_and_does_not_happen_is_told() -> None:
    """RUN-6, OPS-6: a Run that nobody has looked at, and one whose Task routing does not know, are stuck states."""
    home = house()
    forgotten = await home.produce(production(FRAME))
    home.routing.answering = False
    lost = await home.carry(await home.create())
    await standing(home).look()
    assert told(home, "stuck_state") == []
    home.clock.advance(901)
    await standing(home).look()
    assert told(home, "stuck_state") == [forgotten.id, lost.id]


async def test_a_hand_over_that_never_succeeds_is_told() -> None:
    """RUN-6, OPS-6: routing refuses for a quarter of an hour what a Run may hand over."""
    home = house()
    home.routing.fault = Fault.of("overloaded")
    run = await home.carry(await home.produce(production(FRAME)))
    run = await home.carry(run, seconds=901)
    assert stuck(home.plan(run), run, (), home.clock.now()) == "submit of frame is due and does not get done"
    await standing(home).look()
    assert told(home, "stuck_state") == [run.id]
