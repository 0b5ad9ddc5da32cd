"""Minutes of reviewers: held before a question stands, booked with its decision, free when nobody needs to look."""

from typing import Any

import pytest

from libs.faults.fault import Fault
from services.runs.app.advance_runs import Advance
from services.runs.app.command_run import cancel_run
from services.runs.app.examine_artifacts import Inspector
from services.runs.app.hands import Hands
from services.runs.app.plans import Plans
from services.runs.app.recording import Recorder
from services.runs.domain.minutes import ASKED_FOR
from services.runs.domain.plan import DEFAULT_REVIEW_MINUTES
from services.runs.domain.readiness import SOFT_CONCURRENCY
from services.runs.domain.run import RunState
from tests.unit.runs.fakes import OUT_OF_ORDER
from tests.unit.runs.house import House, states
from tests.unit.runs.test_gates import CLIP, FRAME, GATE, fan_out, house, production, shots
from tests.unit.runs.test_limits import all_ended, budget, gates, limit_question
from tests.unit.runs.test_replicas import Unsaved

EXPECTED = DEFAULT_REVIEW_MINUTES
DAY_S = 86_400


def booked(home: House) -> list[int]:
    """The minutes of all Holds, in the order in which they were taken."""
    return [count for _, count in home.budgets.minutes.values()]


async def test_minutes_are_held_before_a_person_is_asked_and_booked_from_the_claim() -> None:
    """COST-10: what one look is expected to take is held with the question; the decision books the time since the
    claim, in started minutes; both are events, and the budget of the node bears it."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE, CLIP)))
    (review,) = await home.reviews(run)
    assert home.budgets.minutes == {f"review:{review.id}": (f"{run.budget_id}/good", EXPECTED)}
    kinds = await home.kinds(run)
    assert kinds.index("review_due") < kinds.index("review_minutes_held") < kinds.index("gate_opened")
    home.clock.advance(3_600)
    await home.people.claim("a", review.id, "lena")
    home.clock.advance(2 * 60 + 1)
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED
    assert (booked(home), run.review_minutes, all_ended(home)) == ([3], 3, True)
    assert [data["minutes"] for data in await home.said(run, "review_minutes_settled")] == [3]
    await home.rebuilds(run)


@pytest.mark.parametrize(("seconds", "minutes"), [(0, 1), (61, 2), (DAY_S, EXPECTED)])
async def test_an_unclaimed_review_costs_at_most_what_was_held(seconds: int, minutes: int) -> None:
    """COST-10: nobody knows when the look began; a review that waits over a night costs nobody's night."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, GATE)))
    home.clock.advance(seconds)
    run = await home.decide(run, "approve")
    assert (run.state, booked(home)) == (RunState.SUCCEEDED, [minutes])


async def test_whoever_let_a_deadline_pass_has_it_no_more() -> None:
    """COST-10, HUMAN-1: the time of a claim ends with the deadline that hands the review on."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME, {**GATE, "deadline": "4h", "deputy": "lead"})))
    (review,) = await home.reviews(run)
    await home.people.claim("a", review.id, "lena")
    run = await home.carry(run, seconds=5 * 3600)
    await home.decide(run, "approve")
    assert booked(home) == [EXPECTED]


async def test_a_review_that_is_superseded_frees_its_minutes() -> None:
    """COST-10, GATE-2: another frame closes the gate and frees what was held for it; the next question holds anew."""
    home = house()
    document = production(FRAME, GATE, reviews={"minutes": 25}, budget=budget(review_minutes=25))
    run = await home.carry(await home.produce(document))
    assert booked(home) == [25]
    run = await home.redrive(run, "frame", input={"prompt": "a heron"})
    assert booked(home) == [0, 25]
    run = await home.decide(run, "approve")
    assert (run.state, booked(home), all_ended(home)) == (RunState.SUCCEEDED, [0, 1], True)
    await home.rebuilds(run)


async def test_a_cancel_frees_what_is_held_for_people() -> None:
    """COST-10, COST-11: a Run ends after its minutes have come free, and a question that waits for some takes none."""
    home = house()
    run = await home.carry(await home.produce(production(*gates("a", "b"), FRAME, budget=budget(review_minutes=15))))
    assert booked(home) == [EXPECTED]
    await cancel_run(home.desk, "a", run.id)
    run = await home.carry(run)
    assert (run.state, booked(home), all_ended(home)) == (RunState.CANCELLED, [0], True)
    assert not run.due
    assert not run.reserved
    await home.rebuilds(run)


async def test_minutes_that_nobody_recorded_come_free_with_the_run() -> None:
    """COST-11, RUN-6: who died between the Hold and its event leaves it to the Run; a Hold that is still under way
    finds its id closed."""
    home = house()
    run = await home.produce(production(FRAME, *gates("a")))
    runs: Any = Unsaved(home.runs, "review_minutes_held")
    hands = Hands(runs, home.routing, home.budgets, Inspector(home.examiner), home.alerts, home.world)
    advance = Advance(runs, home.routing, hands, Plans(), Recorder(runs, home.hub, home.world, home.alerts), home.world)
    with pytest.raises(BaseExceptionGroup):
        await advance.carry_productions()
    (hold,) = home.budgets.minutes
    await cancel_run(home.desk, "a", run.id)
    run = await home.carry(await home.carry(run))
    assert (run.state, home.budgets.looked) == (RunState.CANCELLED, {hold})


async def test_a_soft_limit_of_minutes_slows_down_and_is_told_once() -> None:
    """COST-10: past its soft limit of minutes a production makes two things at once and of each one variant; a hero is
    spared; the event and the alert come once."""
    home = house()
    home.routing.answering = False
    several = {"prompt": "${item.prompt}", "n": 4}
    frames = fan_out(shots(5), needs=["go"])
    frames["node"] = {**frames["node"], "input": several}
    hero = {**FRAME, "id": "hero", "value_class": "hero", "input": {"prompt": "a crane", "n": 4}, "needs": ["go"]}
    document = production(*gates("go"), frames, hero, budget=budget(review_minutes=60, soft_review_minutes=EXPECTED))
    run = await home.carry(await home.produce(document))
    assert run.soft
    run = await home.decide(run, "approve")
    assert len(home.routing.submitted) == SOFT_CONCURRENCY
    counts = {name: order.input["n"] for name, order in home.routing.orders.items()}
    assert counts == {"hero": 4, "frames/S01": 1}
    assert [data["budget_id"] for data in await home.said(run, "budget_soft_limit")] == [run.budget_id]
    assert home.alerts.told.count(("budget_soft_limit", run.budget_id)) == 1
    home.routing.answering = True
    home.answer_all(run)
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    await home.rebuilds(run)


async def test_what_was_made_of_fewer_variants_is_not_made_again_for_it() -> None:
    """COST-10, RUN-5, STALE-1: a redrive elsewhere, and money that came since, leave a good result alone; what is made
    anew behind a raised limit has all its variants."""
    home = house()
    frame = {**FRAME, "input": {"prompt": "a crane", "n": 4}, "needs": ["go"]}
    after = {"id": "after", "kind": "gate", "needs": ["frame"]}
    document = production(*gates("go"), frame, after, budget=budget(soft_review_minutes=EXPECTED))
    run = await home.carry(await home.produce(document))
    run = await home.decide(run, "approve")
    assert home.routing.orders["frame"].input["n"] == 1
    made = len(home.routing.submitted)
    run = await home.redrive(run, "after")
    assert (states(run)["frame"], len(home.routing.submitted)) == ("succeeded", made)
    run = await home.redrive(run, "frame", input={"n": 3})
    assert home.routing.orders["frame"].input["n"] == 3  # a person's word stands
    await home.rebuilds(run)


async def test_a_level_above_that_is_past_its_soft_limit_slows_down_too() -> None:
    """COST-10: who brought it there is told once by the ledger; a production that comes later only goes slower."""
    home = house()
    home.routing.answering = False
    home.budgets.past_soft = ("film",)
    run = await home.carry(await home.produce(production(fan_out(shots(9)))))
    run = await home.carry(run)
    assert [data["budget_id"] for data in await home.said(run, "budget_soft_limit")] == ["film"]
    assert ("budget_soft_limit", "film") not in home.alerts.told


async def test_a_hard_limit_of_minutes_stops_and_asks() -> None:
    """COST-10: a gate without a reviewer's time neither opens nor passes; the request for more states past attempts,
    cause and alternative; with more minutes the question is asked."""
    home = house()
    home.routing.script = {"frame": [OUT_OF_ORDER]}
    document = production(*gates("first"), FRAME, GATE, CLIP, budget=budget(review_minutes=15))
    run = await home.carry(await home.produce(document))
    run = await home.carry(run, seconds=60)
    assert [review.question.node for review in await home.reviews(run)] == ["first", "good"]
    assert states(run) == {"first": "waiting_human", "frame": "succeeded", "good": "waiting_human", "clip": "pending"}
    asked = await limit_question(home, run)
    assert (asked.node, asked.dimension, asked.root_cause) == (
        "good", "review_minutes", f"budget-minutes:{run.budget_id}"
    )  # fmt: skip
    assert "10 of 15 review_minutes are taken" in asked.cause
    assert "Attempts so far: 2 for good, frame, 1 of them failed" in asked.question
    assert "Instead: waive" in asked.question
    assert [failure.code for failure in asked.failures] == ["provider_error"]
    assert ("budget_hard_limit", run.budget_id) in home.alerts.told
    told = {node.id: node.waiting_reason for node in (await home.told(run)).nodes}
    assert told["good"] == f"budget: {asked.cause}"
    run = await home.decide(run, "raise_budget", on="good", review_minutes=40)
    assert [review.question.kind for review in await home.reviews(run)] == ["gate", "gate"]
    await home.decide(run, "approve", on="good")
    run = await home.decide(run, "approve")
    assert (run.state, all_ended(home)) == (RunState.SUCCEEDED, True)
    await home.rebuilds(run)


async def test_minutes_that_come_free_let_the_next_be_asked() -> None:
    """COST-10: a look that took less than was held leaves room; the request for more is then nobody's to answer."""
    home = house()
    run = await home.carry(await home.produce(production(*gates("a", "b"), FRAME, budget=budget(review_minutes=15))))
    assert sorted(review.question.kind for review in await home.reviews(run)) == ["budget", "gate"]
    run = await home.decide(run, "approve", on="a")
    (review,) = await home.reviews(run)
    assert (review.question.kind, review.question.node) == ("gate", "b")
    run = await home.decide(run, "approve")
    assert (run.state, booked(home)) == (RunState.SUCCEEDED, [1, 1])


async def test_without_a_look_it_passes_only_on_a_persons_word() -> None:
    """COST-10, HUMAN-2: waived, a gate passes without a look and the event says whose word it was; stopped, it ends."""
    for decision, end in (("waive", RunState.SUCCEEDED), ("stop", RunState.DEAD_LETTER)):
        home = house()
        run = await home.carry(await home.produce(production(FRAME, GATE, CLIP, budget=budget(review_minutes=1))))
        assert await home.said(run, "gate_opened") == []
        run = await home.decide(run, decision)
        assert (run.state, booked(home), all_ended(home)) == (end, [], True)
        (told,) = await home.said(run, "gate_decided")
        assert (told["decision"], told["who"]) == (decision, "lena")
        assert not run.due
        await home.rebuilds(run)


async def test_canaries_and_checks_wait_for_minutes_too() -> None:
    """COST-10, GATE-1, GATE-3: neither the rest of a class nor what a check found goes on while nobody has the time."""
    canary = {"per": "shot_class", "count": 1, "release": "gate"}
    small = {"id": "looked", "kind": "check", "needs": ["frame"], "checks": [{"min_size": "1280x720"}]}
    for nodes, node, kind, decision in (
        ([fan_out(shots(3), canary=canary)], "frames", "canary", "approve"),
        ([FRAME, small], "looked", "check", "waive"),
    ):
        home = house()
        run = await home.carry(await home.produce(production(*nodes, budget=budget(review_minutes=1))))
        assert (await limit_question(home, run)).node == node
        assert len(home.routing.submitted) == 1
        run = await home.decide(run, "raise_budget", review_minutes=30)
        (review,) = await home.reviews(run)
        assert review.question.kind == kind
        assert not (await home.now(run)).nodes[node].waiting_reason.startswith("budget")
        run = await home.decide(run, decision)
        assert (run.state, booked(home)) == (RunState.SUCCEEDED, [1])
        await home.rebuilds(run)


async def test_waived_without_a_look_canaries_and_checks_pass_too() -> None:
    """COST-10: each passes as if it had been decided itself."""
    canary = {"per": "shot_class", "count": 1, "release": "gate"}
    small = {"id": "looked", "kind": "check", "needs": ["frame"], "checks": [{"min_size": "1280x720"}]}
    for nodes in ([fan_out(shots(3), canary=canary)], [FRAME, small]):
        home = house()
        run = await home.carry(await home.produce(production(*nodes, budget=budget(review_minutes=1))))
        run = await home.decide(run, "waive")
        assert run.state is RunState.SUCCEEDED
        await home.rebuilds(run)


async def test_where_nothing_is_counted_nothing_is_held() -> None:
    """COST-10: a production of gates alone has no budget, and asks at once."""
    home = House()
    run = await home.carry(await home.produce({"production": "p", "nodes": gates("good")}))
    assert (len(await home.reviews(run)), home.budgets.minutes) == (1, {})
    run = await home.decide(run, "approve")
    assert run.state is RunState.SUCCEEDED


async def test_a_ledger_that_is_away_opens_nothing() -> None:
    """COST-11: while it cannot confirm minutes nobody is asked; a want that no raise mends asks too."""
    home = house()
    run = await home.produce(production(*gates("good"), FRAME))
    home.budgets.short = Fault.of("governance_backend_down", "away")
    run = await home.carry(run)
    assert (await home.reviews(run), states(run)["good"]) == ([], "leased")
    assert run.nodes["good"].waiting_reason == ASKED_FOR
    home.budgets.short = Fault.of("not_found", "budget 'film' does not exist")
    run = await home.carry(run)
    assert "no minutes can be held" in (await limit_question(home, run)).cause
    home.budgets.short = None
    run = await home.decide(run, "approve")
    assert [review.question.kind for review in await home.reviews(run)] == ["gate"]


async def test_what_waits_for_minutes_is_due_once_and_ends_with_its_run() -> None:
    """COST-10, RUN-6: while the ledger is away a gate and a check ask for minutes again and again, and are due once; a
    node upstream that is made again takes the question away, and so does a cancel."""
    home = house()
    home.budgets.short = Fault.of("governance_backend_down", "away")
    small = {"id": "looked", "kind": "check", "needs": ["frame"], "checks": [{"min_size": "1280x720"}]}
    run = await home.carry(await home.produce(production(FRAME, GATE, small)))
    run = await home.carry(run, seconds=60)
    assert [data["node"] for data in await home.said(run, "review_due")] == ["good", "looked"]
    assert states(run) == {"frame": "succeeded", "good": "leased", "looked": "leased"}
    run = await home.redrive(run, "frame", input={"prompt": "a heron"})
    assert sorted(due.question.node for due in run.due.values()) == ["good", "looked"]
    assert len(await home.said(run, "review_due")) == 4
    await cancel_run(home.desk, "a", run.id)
    run = await home.carry(run)
    assert (run.state, all_ended(home), run.due, run.reserved) == (RunState.CANCELLED, True, {}, {})
    await home.rebuilds(run)
