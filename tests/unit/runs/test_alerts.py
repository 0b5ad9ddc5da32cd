"""What operators are told of: money that may be lost, and what stands still without a reason."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.runs.app.check_standing import Standing
from services.runs.app.telling import Telling
from services.runs.domain.alerting import still, worse
from services.runs.domain.judging import Facts
from services.runs.domain.moves import RECOVERY
from services.runs.domain.run import AT_WORK, ENDED_NODES, WAITING_TO_START, NodeState, Run, RunState
from services.runs.domain.staleness import stale
from services.runs.domain.standing import stuck
from services.runs.domain.task_view import TaskView
from services.runs.domain.trends import Change, Measured
from tests.unit.runs.fakes import DOUBTED, OUT_OF_ORDER, FakeAlerts
from tests.unit.runs.house import House
from tests.unit.runs.test_gates import CLIP, FRAME, GATE, house, production


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
    """COST-12, OPS-6: a settlement beyond its Hold is a cost anomaly of the budget that bears it; it tells money as
    people write it, the node and its Run."""
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
    (message,) = [alert.message for alert in home.alerts.alerts if alert.kind == "cost_anomaly"]
    assert message == f"frame of run {run.id} cost 7.00 CNY more than the 2.00 CNY that were held for it"
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


RIGHTS = {"id": "cleared", "kind": "gate", "needs": ["frame"], "rank": "rights"}
RELEASE = {"id": "release", "kind": "gate", "needs": ["frame"], "rank": "release"}
SEEN = {"id": "seen", "kind": "gate", "needs": ["frame"], "rank": "rest"}


async def approved(*gates: dict[str, Any]) -> tuple[House, Run]:
    """A house with a production of one frame that every gate has approved."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, *gates, {**CLIP, "needs": [g["id"] for g in gates]})))
    for gate in gates:
        run = await home.decide(run, "approve", on=gate["id"])
    assert run.state is RunState.SUCCEEDED
    return home, run


@pytest.mark.parametrize(("gate", "kind"), [(RIGHTS, "rights_expired"), (RELEASE, "release_hash_changed")])
async def test_an_approval_that_no_longer_holds_is_told_at_once(gate: dict[str, Any], kind: str) -> None:
    """SLO-2, GATE-2: rights were cleared, a release was approved, and it is another picture now: critical, with the
    event that shows it, and not again with the next look."""
    home, run = await approved(gate)
    assert home.alerts.told == []
    run = await home.redrive(run, "frame", input={"prompt": "a heron"})
    assert home.alerts.told == [(kind, f"{run.id}/{gate['id']}")]
    (alert,) = home.alerts.alerts
    marked = next(data for data in await home.said(run, "node_stale") if data["node"] == gate["id"])
    assert alert.severity == "critical"
    assert marked["was"][:12] in alert.message
    await home.carry(run, seconds=3600)
    assert len(home.alerts.told) == 1


async def test_other_approvals_are_simply_asked_for_again() -> None:
    """SLO-2, GATE-2: a gate that is neither of rights nor of a release closes again and asks; nobody is called. Nor for
    a picture that is made again and is the same, nor for a gate that had said no."""
    home, run = await approved(SEEN)
    await home.redrive(run, "frame", input={"prompt": "a heron"})
    home, run = await approved(RELEASE)
    await home.redrive(run, "frame")
    assert home.alerts.told == []
    home = house()
    run = await home.carry(await home.produce(production(FRAME, RELEASE)))
    run = await home.decide(run, "reject", comment="three legs")
    await home.redrive(run, "frame", input={"prompt": "two legs"})
    assert home.alerts.told == []
    refused = replace(run.nodes["release"], input_hash="of another picture")
    (marked,) = stale(home.plan(run), replace(run, nodes={**run.nodes, "release": refused}))
    assert "rank" not in marked.data


@pytest.mark.parametrize(
    ("check", "expected"),
    [({"hash": "0" * 64}, ["facts_in_conflict"]), ({"min_size": "1000x1000"}, []), ("decodes", [])],
)
async def test_facts_in_conflict_are_told_at_once(check: Any, expected: list[str]) -> None:
    """SLO-2: a check finds another file than was settled; one that is merely not good enough asks a person, and nobody
    else is called."""
    home = house()
    look = {"id": "check", "kind": "check", "needs": ["frame"], "checks": [check]}
    run = await home.carry(await home.produce(production(FRAME, look)))
    assert home.alerts.told == [(kind, f"{run.id}/check") for kind in expected]
    assert all("is asked for" in alert.message for alert in home.alerts.alerts)
    assert len(await home.reviews(run)) == (0 if check == "decodes" else 1)


async def test_bytes_that_are_not_those_that_were_made_are_told_at_once() -> None:
    """SLO-2, RUN-7: between its making and the check a picture was damaged: what would be released is another."""
    home = house()
    gate = {**GATE, "rank": "rest"}
    check = {"id": "check", "kind": "check", "needs": ["frame", "good"], "checks": ["decodes"]}
    run = await home.carry(await home.produce(production(FRAME, gate, check)))
    (made,) = run.nodes["frame"].artifacts
    home.examiner.facts[made.sha256] = Facts(made.sha256, unsound="is damaged")
    run = await home.decide(run, "approve")
    assert home.alerts.told == [("release_hash_changed", f"{run.id}/check")]
    assert "is damaged" in home.alerts.alerts[0].message


async def test_one_slow_background_candidate_is_simply_made_later() -> None:
    """SLO-2: its supply is out of order twice and slow for an hour; it is tried again, made, and nobody was called."""
    home = house()
    home.routing.script = {"frame": [OUT_OF_ORDER, OUT_OF_ORDER]}
    slow = {**FRAME, "value_class": "background", "budget": {"attempts": 3}}
    run = await home.carry(await home.produce(production(slow)))
    run = await home.carry(run, seconds=60)
    home.routing.answering = False
    run = await home.carry(run, seconds=3600)
    home.routing.views |= {run.nodes["frame"].task_id: TaskView(run.nodes["frame"].task_id, 2, "running", None)}
    home.clock.advance(3600)
    await standing(home).look()
    del home.routing.views[run.nodes["frame"].task_id]
    home.answer_all(run)
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    assert [data["retry"][:14] for data in await home.said(run, "node_waiting") if "retry" in data] == [
        "provider_error", "provider_error",
    ]  # fmt: skip
    assert home.alerts.told == []


async def test_what_nobody_takes_is_told_later() -> None:
    """OPS-6: while the book of alerts is away nothing is undone and nothing is lost; words that it refuses are no
    reason to hold up others."""
    book = FakeAlerts(away=Fault.of("peer_unavailable"))
    telling = Telling(book)
    for number in range(3):
        await telling.tell(still(f"r{number}", "it stands"), f"/v1/runs/r{number}")
    await telling.again()
    assert book.told == []
    book.away = None
    await telling.again()
    assert book.told == [("stuck_state", "r0"), ("stuck_state", "r1"), ("stuck_state", "r2")]
    assert book.links == ["/v1/runs/r0", "/v1/runs/r1", "/v1/runs/r2"]
    await telling.again()
    assert len(book.told) == 3
    book.away = Fault.invalid(("/kind", "is not known"))
    await telling.tell(still("r3", "it stands"), "/v1/runs/r3")
    book.away = None
    await telling.again()
    assert len(book.told) == 3


@pytest.mark.parametrize(
    ("figure", "unit", "expected"),
    [
        ("first_pass_yield", "ratio", ("exact_supply_unavailable", "critical")),
        ("queue_time", "s", ("stuck_state", "medium")),
        ("cost_per_usable_second", "CNY", ("cost_drift", "high")),
    ],
)
def test_a_figure_that_went_bad_is_told_with_itself(figure: str, unit: str, expected: tuple[str, str]) -> None:
    """SLO-2, OPS-6: of the model, apart from what dispatch tells of it, with its baseline and its way."""
    measured = Measured(figure, unit, 0.8, (0.8, 0.4))
    alert = worse(Change("clip", measured))
    assert ((alert.kind, alert.severity), alert.subject, alert.sort) == (expected, "clip", figure)
    assert alert.measure == measured
    assert "clip" in alert.message
