"""Questions to people: what they carry, in which order they come, what happens when nobody answers, what is decided."""

from dataclasses import replace
from decimal import Decimal

import pytest

from libs.faults.fault import Fault
from services.runs.domain.asking import shown
from services.runs.domain.deciding import Verdict
from services.runs.domain.desks import DeskChanges, ReviewState
from services.runs.domain.readiness import SOFT_CONCURRENCY
from services.runs.domain.run import Decision, RunState
from tests.unit.runs.fakes import DOUBTED, OUT_OF_ORDER
from tests.unit.runs.house import House, states
from tests.unit.runs.test_gates import BUDGET, CLIP, FRAME, GATE, fan_out, house, production, shots


async def test_a_question_carries_what_is_needed_to_answer_it() -> None:
    """HUMAN-1: what, why, the failures before, the money spent, the remedies, the decisions, a deadline, a deputy."""
    home = house()
    home.routing.script = {"frame": [OUT_OF_ORDER]}
    gate = {**GATE, "deadline": "4h", "deputy": "lead", "question": "Is the crane right?"}
    run = await home.carry(await home.produce(production(FRAME, gate)))
    run = await home.carry(run, seconds=60)
    (review,) = await home.reviews(run)
    asked = review.question
    assert (asked.question, asked.kind, asked.node, asked.deputy) == ("Is the crane right?", "gate", "good", "lead")
    assert [failure.code for failure in asked.failures] == ["provider_error"]
    assert asked.artifacts == run.nodes["frame"].artifacts
    assert str(asked.spent and asked.spent.amount) == "1.00"
    assert Decision.CHANGE_INPUT in asked.decisions
    assert len(asked.remedies) == len(asked.decisions)
    assert (asked.deadline - asked.opened_at).total_seconds() == 4 * 3600


async def test_a_reviewer_sees_what_an_approval_binds_to() -> None:
    """HUMAN-1, GATE-2: the value that the gate declares is in the question; a long text is cut, and says so."""
    home = house()
    gate = {**GATE, "subject": {"title": "The Crane", "shots": ["${inputs.first}", "x" * 3_000]}}
    run = await home.carry(await home.produce(production(FRAME, gate, inputs={"first": "a harbour"})))
    (review,) = await home.reviews(run)
    cut = "x" * 2_000 + "… (3000 characters)"
    assert review.question.subject == {"title": "The Crane", "shots": ["a harbour", cut]}
    await home.rebuilds(run)


def test_a_subject_is_shown_as_far_as_a_person_reads_it() -> None:
    """HUMAN-1: shorter texts where there are many, nothing where it is beyond all reading."""
    assert shown(["é" * 3_000] * 40) == ["é" * 200 + "… (3000 characters)"] * 40
    assert shown([["ten words"] * 100] * 100) is None
    assert shown(None) is None


async def test_a_deadline_is_executed() -> None:
    """HUMAN-1: nobody answers, the deputy is asked; the deputy does not, the operator is; each is an event, and none
    comes before its time."""
    home = house()
    gate = {**GATE, "deadline": "4h", "deputy": "lead"}
    run = await home.carry(await home.produce(production(FRAME, gate)))
    (review,) = await home.reviews(run)
    left_s = (review.question.deadline - home.world.clock.now()).total_seconds()
    run = await home.carry(run, seconds=left_s - 1)
    assert await home.said(run, "review_escalated") == []
    run = await home.carry(run, seconds=1)
    (review,) = await home.reviews(run)
    assert (review.question.assignee, review.state) == ("lead", ReviewState.CLAIMED)
    run = await home.carry(run, seconds=4 * 3600)
    (review,) = await home.reviews(run)
    assert (review.question.assignee, review.question.escalations) == ("operator", 2)
    assert [data["assignee"] for data in await home.said(run, "review_escalated")] == ["lead", "operator"]
    await home.rebuilds(run)


async def test_the_queue_is_in_order() -> None:
    """HUMAN-3: rights and facts first, release blockers, heroes, the rest; one root cause together."""
    home = house()
    nodes = [
        {"id": "rest", "kind": "gate"},
        {"id": "hero", "kind": "gate", "rank": "hero"},
        {"id": "rights", "kind": "gate", "rank": "rights"},
        {"id": "after", "kind": "gate", "needs": ["rest", "hero", "rights"]},
        {"id": "release", "kind": "gate", "rank": "release"},
    ]
    run = await home.carry(await home.produce(production(*nodes)))
    assert [review.question.node for review in await home.reviews(run)] == ["rights", "release", "hero", "rest"]


async def test_one_root_cause_comes_together() -> None:
    """HUMAN-3: two charges in doubt of one map stand side by side, though a gate was opened between them."""
    home = house()
    home.routing.script = {"frames/S01": [DOUBTED], "frames/S02": [OUT_OF_ORDER, DOUBTED]}
    gate = {"id": "between", "kind": "gate", "needs": ["first"]}
    first = {**FRAME, "id": "first"}
    home.routing.script["first"] = [OUT_OF_ORDER]
    after = {"id": "after", "kind": "gate", "needs": ["between"]}
    run = await home.carry(await home.produce(production(fan_out(shots(2)), first, gate, after)))
    home.routing.script["frames/S02"].insert(0, OUT_OF_ORDER)
    run = await home.carry(run, seconds=3)
    run = await home.carry(run, seconds=60)
    opened = [data["node"] for kind in ("review_opened", "gate_opened") for data in await home.said(run, kind)]
    assert sorted(opened) == ["between", "frames/S01", "frames/S02"]
    assert [review.question.node for review in await home.reviews(run)] == ["frames/S01", "frames/S02", "between"]


async def test_every_decision_is_an_event_with_who_and_why() -> None:
    """HUMAN-2: approve, reject, reroute, change the input, raise the budget, waive, stop."""
    for decision, said in (
        ("approve", {}),
        ("reject", {"comment": "no"}),
        ("waive", {}),
        ("stop", {}),
        ("change_input", {"input": {"prompt": "a heron"}, "node": "frame"}),
        ("reroute", {"supply": "b/two", "node": "frame"}),
    ):
        home = house()
        run = await home.carry(await home.produce(production(FRAME, GATE, CLIP)))
        run = await home.decide(run, decision, **said)
        (told,) = (await home.said(run, "gate_decided"))[:1]
        assert (told["decision"], told["who"], told["comment"]) == (decision, "lena", said.get("comment", ""))
        await home.rebuilds(run)
    assert home.routing.supplies["frame"] == "b/two"
    assert states(run)["good"] == "waiting_human"


async def test_a_decision_that_cannot_be_is_refused_by_field() -> None:
    """HUMAN-2, GATE-2: what lacks its argument, comes too late or was looked at before it changed is told."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE, CLIP)))
    (review,) = await home.reviews(run)
    for verdict, pointer in (
        (Verdict(Decision.RAISE_BUDGET, "lena"), "/decision"),
        (Verdict(Decision.CHANGE_INPUT, "lena"), "/input"),
        (Verdict(Decision.REROUTE, "lena"), "/supply"),
        (Verdict(Decision.REROUTE, "lena", supply="b", node="none"), "/input/node"),
    ):
        with pytest.raises(Fault) as caught:
            await home.people.decide("a", review.id, verdict, "")
        assert caught.value.code == "validation_failed"
        assert [error.pointer for error in caught.value.errors] == [pointer]
    with pytest.raises(Fault) as caught:
        await home.people.decide("a", review.id, Verdict(Decision.APPROVE, "lena"), "another hash")
    assert caught.value.code == "conflict"
    await home.people.decide("a", review.id, Verdict(Decision.APPROVE, "lena"), review.question.subject_hash)
    again = await home.people.decide("a", review.id, Verdict(Decision.APPROVE, "lena"), "")
    assert again.state is ReviewState.DECIDED
    with pytest.raises(Fault) as caught:
        await home.people.decide("a", review.id, Verdict(Decision.WAIVE, "otto"), "")
    assert caught.value.code == "conflict"
    with pytest.raises(Fault) as caught:
        await home.people.claim("another tenant", review.id, "otto")
    assert caught.value.code == "not_found"


async def test_a_hard_limit_asks_and_more_money_lets_it_go_on() -> None:
    """COST-9, COST-10, HUMAN-3: exactly what fits runs; one question is asked for all; raised, the rest runs."""
    home = house()
    document = production(fan_out(shots(20)), budget={"currency": "CNY", "cost": "7.00"})
    run = await home.carry(await home.produce(document))
    assert str(run.usage.cost and run.usage.cost.amount) == "6.00"  # a Hold is for the two attempts of the policy
    (review,) = await home.reviews(run)
    assert review.question.kind == "budget"
    assert ("budget_hard_limit", run.budget_id) in home.alerts.told
    run = await home.decide(run, "raise_budget", budget={"currency": "CNY", "amount": "30.00"})
    assert run.state is RunState.SUCCEEDED
    assert len(home.routing.submitted) == 20
    await home.rebuilds(run)


async def test_more_money_for_one_node_lets_it_go_on() -> None:
    """HUMAN-2, COST-10: where a node's own limit refuses, the question names that level, and raising it is enough."""
    home = house()
    frame = {**FRAME, "budget": {"cost": "0.50"}}
    run = await home.carry(await home.produce(production(frame)))
    (review,) = await home.reviews(run)
    assert review.question.root_cause == f"budget:{run.budget_id}/frame"
    run = await home.decide(run, "raise_budget", budget={"currency": "CNY", "amount": "1.00"})
    assert run.state is RunState.SUCCEEDED
    await home.rebuilds(run)


async def test_a_soft_limit_slows_down_and_is_told_once() -> None:
    """COST-10: past its soft limit a production makes two things at once; the event and the alert come once."""
    home = house()
    home.routing.answering = False
    document = production(fan_out(shots(9)), budget={"currency": "CNY", "cost": "90.00", "soft": "6.00"})
    run = await home.carry(await home.produce(document))
    assert run.soft
    assert len(await home.said(run, "budget_soft_limit")) == 1
    assert len(home.routing.submitted) == 3  # the third one reached it
    home.answer_all(run)
    run = await home.carry(run)
    assert len(home.routing.submitted) == 3 + SOFT_CONCURRENCY
    home.routing.answering = True
    home.answer_all(run)
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    assert [told for told in home.alerts.told if told[0] == "budget_soft_limit"] == [
        ("budget_soft_limit", run.budget_id)
    ]


async def test_nothing_unpriced_runs() -> None:
    """COST-9, RUN-3: what nobody can price waits for a person, and calls nobody."""
    home = house()
    run = await home.produce(production(FRAME))
    home.routing.unpriced.add("frame")
    run = await home.carry(run)
    (review,) = await home.reviews(run)
    assert (review.question.kind, home.routing.submitted) == ("unpriced", [])
    home.routing.unpriced.clear()
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED


async def test_a_doubtful_charge_waits_with_its_hold() -> None:
    """RUN-6, COST-12: nobody pays twice without a person's word; the anomaly is on record."""
    home = house()
    home.routing.script = {"frame": [DOUBTED]}
    run = await home.carry(await home.produce(production(FRAME)))
    assert run.nodes["frame"].hold is not None
    run = await home.decide(run, "stop")
    assert run.state is RunState.DEAD_LETTER
    assert run.nodes["frame"].hold is None
    assert len(await home.said(run, "cost_anomaly")) == 1


async def test_a_doubtful_charge_made_elsewhere_is_on_record() -> None:
    """RUN-6: who has it made again at another supply may pay twice as well, and the anomaly says so."""
    home = house()
    home.routing.script = {"frame": [DOUBTED]}
    run = await home.carry(await home.produce(production(FRAME)))
    run = await home.decide(run, "reroute", supply="b/two")
    assert run.state is RunState.SUCCEEDED
    assert len(await home.said(run, "cost_anomaly")) == 1
    await home.rebuilds(run)


async def test_compensation_takes_back_and_deletes_nothing() -> None:
    """COMP-1: a rejected artifact counts no longer; what has not begun is cancelled; the history keeps it, paid."""
    home = house()
    frame = {**FRAME, "compensation": "invalidate_artifact"}
    other = {"id": "other", "kind": "generate", "model": "clip", "input": {"first_frame": "${frame.artifact}"},
             "needs": ["good"]}  # fmt: skip
    run = await home.carry(await home.produce(production(frame, GATE, other)))
    made = run.nodes["frame"].artifacts
    run = await home.decide(run, "reject", comment="rights")
    assert run.nodes["frame"].artifacts == ()
    (began,), (ended,) = await home.said(run, "compensation_started"), await home.said(run, "compensation_finished")
    assert (began["artifacts"], ended["invalidated"]) == ([made[0].sha256], [made[0].sha256])
    assert states(run)["other"] == "cancelled"
    assert any(event.kind == "artifact_written" and event.data["sha256"] == made[0].sha256
               for event in await home.events(run))  # fmt: skip
    run = await home.redrive(run, "frame", input={"prompt": "another"})
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED
    await home.rebuilds(run)


async def test_compensation_waits_for_nothing() -> None:
    """COMP-1: it has its lane: neither review backlog, soft limit nor full slots hold it back."""
    home = house()
    frame = {**FRAME, "compensation": "invalidate_artifact"}
    others = [{"id": f"g{n}", "kind": "gate"} for n in range(3)]
    budget = {"currency": "CNY", "cost": "9.00", "soft": "1.00"}
    document = production(frame, GATE, *others, reviews={"most": 2, "resume": 0}, budget=budget, concurrency=1)
    run = await home.carry(await home.produce(document))
    assert run.backpressure
    assert run.soft
    run = await home.decide(run, "reject", on="good")
    assert len(await home.said(run, "compensation_finished")) == 1
    assert run.nodes["frame"].artifacts == ()


async def test_a_hold_of_another_price_is_held_as_it_stands() -> None:
    """COST-9, RUN-6: a Hold whose answer was lost and that would cost something else by now pays for its try; none is
    given back, nothing is stuck."""
    home = house()
    run = await home.produce(production(FRAME))
    home.routing.fault = Fault.of("governance_backend_down", "away")
    run = await home.carry(run)
    hold = run.nodes["frame"].hold
    assert hold is not None
    home.budgets.held[hold.id] = (run.budget_id, hold.amount.amount + 1)
    kept = replace(run, nodes={"frame": replace(run.nodes["frame"], hold=None)})
    await home.runs.save(kept, (), home.clock.now(), DeskChanges())
    home.routing.fault = None
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    assert set(home.routing.submitted) == set(home.budgets.held) == home.budgets.over == {hold.id}


async def test_a_house_has_its_budget() -> None:
    """COST-9: the Hold of each try is settled at what it really cost, and the rest is free again."""
    home = House()
    home.routing.answering = True
    run = await home.carry(await home.produce(production(FRAME, budget=BUDGET)))
    assert run.state is RunState.SUCCEEDED
    assert set(home.budgets.held) == home.budgets.over
    assert home.budgets.spent == {run.budget_id: 1}


async def test_money_of_others_is_nobodys_to_spend() -> None:
    """COST-9, AUTH-1: a budget that is another tenant's, or that is not there, is refused at creation by its field."""
    home = house()
    home.budgets.foreign = {"theirs"}
    document = production(FRAME, budget={"currency": "CNY", "cost": "9.00", "parent": "theirs"})
    for asked, pointer in (
        (home.produce(document), "/production/budget/parent"),
        (home.create(budget_id="theirs"), "/options/budget"),
    ):
        with pytest.raises(Fault) as caught:
            await asked
        assert [error.pointer for error in caught.value.errors] == [pointer]


async def test_who_may_ask_for_more_depends_on_the_value_of_a_node() -> None:
    """COST-10: a background node is to be simplified; what a review cannot raise is raised elsewhere, then approved."""
    home = house()
    tight = {"currency": "CNY", "cost": "1.00"}
    run = await home.carry(await home.produce(production({**FRAME, "value_class": "background"}, budget=tight)))
    (review,) = await home.reviews(run)
    assert Decision.RAISE_BUDGET not in review.question.decisions
    assert "simplified" in review.question.question
    home.budgets.hard[run.budget_id] = Decimal("9.00")
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED
