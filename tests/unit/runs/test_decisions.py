"""Decisions are held against those who carry them out before they are on record, and carried out once they are."""

from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.runs.app.advance_runs import Advance
from services.runs.app.command_run import Desk, cancel_run
from services.runs.app.examine_artifacts import Inspector
from services.runs.app.hands import Hands
from services.runs.app.plans import Plans
from services.runs.app.recording import Recorder
from services.runs.app.review_desk import ReviewDesk
from services.runs.domain.deciding import Verdict
from services.runs.domain.desks import Review
from services.runs.domain.run import Decision, NodeState, RunState
from tests.unit.runs.fakes import OUT_OF_ORDER, REFUSED
from tests.unit.runs.house import House, states
from tests.unit.runs.test_gates import CLIP, FRAME, GATE, fan_out, house, production, shots
from tests.unit.runs.test_replicas import Unsaved

TIGHT = {**FRAME, "budget": {"cost": "0.50"}}
MORE = {"currency": "CNY", "amount": "9.00"}


async def refusal(home: House, review: Review, decision: Decision, **said: Any) -> Fault:
    """What a decision is refused with."""
    with pytest.raises(Fault) as caught:
        await home.people.decide("a", review.id, Verdict(decision, "lena", **said), "")
    return caught.value


def told(fault: Fault) -> dict[str, str]:
    """Reasons by field."""
    return {error.pointer: error.reason for error in fault.errors}


@pytest.mark.parametrize(
    "decision, said, pointer, words",
    [
        (Decision.REROUTE, {"supply": "c/none"}, "/supply", "name one of a/one, b/two"),
        (Decision.REROUTE, {"supply": "b/small", "input": {"duration_s": 12}}, "/supply", "needs 12 s, admits 10"),
        (Decision.CHANGE_INPUT, {"input": {"duration_s": 99}}, "/input/duration_s", "the model admits 15 s"),
        (Decision.CHANGE_INPUT, {"input": {"prompt": "x"}, "node": "good"}, "/input/node", "good is a gate"),
    ],
)
async def test_what_could_never_be_served_is_refused_by_its_field(
    decision: Decision, said: dict[str, Any], pointer: str, words: str
) -> None:
    """HUMAN-2, SEL-2: the field and the remedy, before anything is on record; the question stays open, nothing is a
    dead letter, and a better answer is taken."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE, CLIP)))
    (review,) = await home.reviews(run)
    fault = await refusal(home, review, decision, **said)
    assert fault.code == "validation_failed"
    assert words in told(fault)[pointer]
    assert (await home.now(run)).last_sequence == run.last_sequence
    assert await home.reviews(run) == [review]
    run = await home.decide(run, "reroute", supply="b/two")
    assert home.routing.supplies["frame"] == "b/two"
    assert states(run)["good"] == "waiting_human"


@pytest.mark.parametrize(
    "decision, first, other",
    [
        (Decision.CHANGE_INPUT, {"input": {"prompt": "by day"}}, {"input": {"prompt": "by night"}}),
        (Decision.CHANGE_INPUT, {"input": {"prompt": "by day"}}, {"input": {"prompt": "by day"}, "node": "frame"}),
        (Decision.REROUTE, {"supply": "a/one"}, {"supply": "b/two"}),
    ],
)
async def test_another_change_is_no_repetition(
    decision: Decision, first: dict[str, Any], other: dict[str, Any]
) -> None:
    """HUMAN-2: the same again is harmless; who changes it is told that the first stands, not that theirs was taken."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE, CLIP)))
    (review,) = await home.reviews(run)
    once = await home.people.decide("a", review.id, Verdict(decision, "lena", **first), "")
    assert await home.people.decide("a", review.id, Verdict(decision, "lena", **first, comment="again"), "") == once
    assert (await refusal(home, review, decision, **other)).code == "conflict"


async def test_a_model_that_is_gone_is_told_at_the_node() -> None:
    """HUMAN-2, SEL-1: what no change of the input mends is told where the node is named."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE)))
    (review,) = await home.reviews(run)
    home.routing.away = Fault.of("model_not_published", "model 'frame' is not published")
    assert told(await refusal(home, review, Decision.CHANGE_INPUT, input={"prompt": "x"})) == {
        "/input/node": "model 'frame' is not published"
    }


async def test_a_decision_waits_for_those_who_judge_it() -> None:
    """HUMAN-2: while routing is away a change is neither taken nor lost; a full queue says nothing of it."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE)))
    (review,) = await home.reviews(run)
    home.routing.away = Fault.of("peer_unavailable", "away")
    fault = await refusal(home, review, Decision.CHANGE_INPUT, input={"prompt": "x"})
    assert (fault.code, (await home.now(run)).last_sequence) == ("peer_unavailable", run.last_sequence)
    home.routing.away = Fault.of("quota_exceeded", "1000 runs wait")
    verdict = Verdict(Decision.CHANGE_INPUT, "lena", input={"prompt": "x"})
    assert (await home.people.decide("a", review.id, verdict, "")).decision == "change_input"


async def test_a_redrive_with_a_change_is_judged_too() -> None:
    """HUMAN-2, DLQ-1: the case file stays open; of several nodes each is named."""
    home = house()
    home.routing.script = {"frames/S01": [REFUSED], "frames/S02": [REFUSED]}
    frames = fan_out(shots(2), tolerate={"failures": 2})
    clip = {"id": "clip", "kind": "generate", "model": "clip", "input": {"first_frame": "${frame.artifact}"}}
    home.routing.script["frame"] = [REFUSED]
    run = await home.carry(await home.produce(production(frames, FRAME, clip)))
    assert run.state is RunState.DEAD_LETTER
    for node, said, pointer, words in (
        ("frame", {"supply": "c/none"}, "/supply", "name one of a/one"),
        ("frame", {"input": {"duration_s": 99}}, "/input/duration_s", "the model admits 15 s"),
        ("frames", {"supply": "c/none"}, "/supply", "frames/S02: 'c/none'"),
    ):
        with pytest.raises(Fault) as caught:
            await home.redrive(run, node, **said)
        assert words in told(caught.value)[pointer]
    assert (await home.now(run)).last_sequence == run.last_sequence
    run = await home.redrive(run, "frame", input={"prompt": "a heron"}, supply="b/two")
    assert home.routing.supplies["frame"] == "b/two"
    assert (home.routing.validated[-1][1], states(run)["clip"]) == ("", "succeeded")
    assert "b/two" in {supply for _, supply in home.routing.validated}


async def test_what_is_not_known_yet_is_not_judged() -> None:
    """HUMAN-2, RUN-3: of an input whose files are still to be made, only what it holds already is judged."""
    home = house()
    clip = {"id": "clip", "kind": "generate", "model": "clip", "input": {"first_frame": "${frame.artifact}"}}
    go = {"id": "go", "kind": "gate"}
    run = await home.carry(await home.produce(production(go, {**FRAME, "needs": ["go"]}, clip)))
    with pytest.raises(Fault) as caught:
        await home.redrive(run, "clip", input={"duration_s": 99})
    assert set(told(caught.value)) == {"/input/duration_s"}
    run = await home.redrive(run, "clip", input={"duration_s": 5})
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED
    assert home.routing.orders["clip"].input["duration_s"] == 5


async def test_input_and_supply_are_for_what_generates() -> None:
    """HUMAN-2: a change that would mean nothing is refused where the node is named."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE, {**fan_out(shots(1)), "needs": ["good"]})))
    for node, words in (("good", "is a gate"), ("frames", "map without items as yet")):
        with pytest.raises(Fault) as caught:
            await home.redrive(run, node, supply="b/two")
        assert words in told(caught.value)["/node"]


async def test_a_single_generation_is_redriven_with_what_changed() -> None:
    """DLQ-1, RUN-1a: the input that was sent, with the fields that a person changed."""
    home = house()
    home.routing.script = {"main": [OUT_OF_ORDER]}
    run = await home.carry(await home.create())
    run = await home.redrive(run, "main", input={"prompt": "y"}, supply="b/two")
    assert run.state is RunState.SUCCEEDED
    assert home.routing.orders["main"].input == {"prompt": "y"}
    assert home.routing.supplies["main"] == "b/two"


@pytest.mark.parametrize(
    "limit, pointer",
    [
        ({"currency": "USD", "amount": "9.00"}, "/budget/currency"),
        ({"currency": "CNY", "amount": "0.10"}, "/budget/amount"),
    ],
)
async def test_a_limit_that_cannot_be_is_refused_by_its_field(limit: dict[str, str], pointer: str) -> None:
    """HUMAN-2, COST-10: another currency, or less than is spent and held already."""
    home = house()
    tight = {"currency": "CNY", "cost": "2.00"}
    run = await home.carry(await home.produce(production(fan_out(shots(3)), budget=tight)))
    (review,) = await home.reviews(run)
    fault = await refusal(home, review, Decision.RAISE_BUDGET, budget=limit)
    assert (set(told(fault)), home.budgets.raised) == ({pointer}, [])
    assert await home.reviews(run) == [review]


async def test_a_limit_is_raised_once_the_decision_is_on_record() -> None:
    """HUMAN-2, COST-10, RUN-6: the ledger is told by an act of the Run; while it is away nobody is asked again, and
    then everything goes on, in the words of who decided."""
    home = house()
    run = await home.carry(await home.produce(production(TIGHT)))
    (review,) = await home.reviews(run)
    home.budgets.deaf = Fault.of("peer_unavailable", "away")
    run = await home.decide(run, "raise_budget", budget=MORE, comment="worth it")
    assert (run.nodes["frame"].state, len(run.raising)) == (NodeState.LEASED, 1)
    assert (await home.reviews(run), home.budgets.held) == ([], {})
    await home.rebuilds(run)
    home.budgets.deaf = None
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    assert home.budgets.raised == [(review.id, Decimal("9.00"), "lena: worth it")]
    (raised,) = await home.said(run, "budget_raised")
    assert (raised["who"], raised["limit"]["amount"]) == ("lena", "9.00")
    await home.rebuilds(run)


def dying(home: House, kind: str) -> tuple[Advance, ReviewDesk]:
    """A process that is killed before it writes an event of that kind."""
    runs: Any = Unsaved(home.runs, kind)
    recorder = Recorder(runs, home.hub, home.world, home.alerts)
    hands = Hands(runs, home.routing, home.budgets, Inspector(home.examiner), home.alerts, home.world)
    desk = Desk(runs, home.routing, recorder, home.world, home.budgets)
    people = ReviewDesk(desk, home.runs, home.plans, home.budgets)
    return Advance(runs, home.routing, hands, Plans(), recorder, home.world), people


async def test_a_crash_leaves_both_or_neither() -> None:
    """HUMAN-2, RUN-6: killed before the decision is on record, nothing is raised; killed between the ledger and its
    event, the same limit is told once more under the same id."""
    home = house()
    run = await home.carry(await home.produce(production(TIGHT)))
    (review,) = await home.reviews(run)
    verdict = Verdict(Decision.RAISE_BUDGET, "lena", budget=MORE)
    _, people = dying(home, "review_decided")
    with pytest.raises(RuntimeError, match="killed"):
        await people.decide("a", review.id, verdict, "")
    assert (home.budgets.raised, await home.reviews(run)) == ([], [review])
    await home.people.decide("a", review.id, verdict, "")
    advance, _ = dying(home, "budget_raised")
    with pytest.raises(BaseExceptionGroup):
        await advance.carry_productions()
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    assert home.budgets.raised == [(review.id, Decimal("9.00"), "lena: ")] * 2
    assert len(await home.said(run, "budget_raised")) == 1


async def test_a_limit_that_the_ledger_never_takes_asks_again() -> None:
    """HUMAN-2, COST-10: nothing hangs on it: whoever was refused asks again, and a person is told why."""
    home = house()
    run = await home.carry(await home.produce(production(TIGHT)))
    (review,) = await home.reviews(run)
    home.budgets.deaf = Fault.of("not_found", "the books are closed")
    run = await home.decide(run, "raise_budget", budget=MORE)
    (again,) = await home.reviews(run)
    assert again.id != review.id
    assert (await home.said(run, "budget_not_raised"))[0]["cause"] == "the books are closed"
    await home.rebuilds(run)


async def test_a_decided_limit_outlives_a_cancel() -> None:
    """HUMAN-2, RUN-8: a Run ends only when what was decided about a budget, which may be others' too, is done."""
    home = house()
    run = await home.carry(await home.produce(production(TIGHT)))
    home.budgets.deaf = Fault.of("peer_unavailable", "away")
    run = await home.decide(run, "raise_budget", budget=MORE)
    await cancel_run(home.desk, "a", run.id)
    run = await home.carry(await home.carry(run))
    assert (run.state, states(run)) == (RunState.RUNNING, {"frame": "cancelled"})
    home.budgets.deaf = None
    run = await home.carry(await home.carry(run))
    assert run.state is RunState.CANCELLED
    assert len(home.budgets.raised) == 1
    await home.rebuilds(run)
