"""Terms of a Task: the one Supply that may serve it, and fewer Attempts than the policy permits."""

import json
from dataclasses import replace
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app.explain_task import explain_task
from services.routing.app.replay_selection import replay_selection
from services.routing.domain.catalog import RealPerson
from services.routing.domain.decision import Inputs, Verdict
from services.routing.domain.request import Request, Terms
from services.routing.domain.selection import select
from services.routing.domain.selection_record import record_text, recorded_inputs, replays
from services.routing.domain.task import TaskState
from tests.unit.routing.dispatch_fakes import stage
from tests.unit.routing.selection_inputs import FULL, FULL_INPUT, OPEN, fate_of, fates, market, offer
from tests.unit.routing.test_selection_properties import markets

BUSY = Fault.of("rate_limited", "429", retry_after_ms=0)


def only(inputs: Inputs, supply: str) -> Inputs:
    """The same with that Supply named."""
    return replace(inputs, request=replace(inputs.request, terms=Terms(supply=supply)))


def test_only_the_named_supply_is_a_candidate():
    """HUMAN-2, SEL-16: whatever the policy prefers; every other bound Supply is dropped with words and its quote."""
    inputs = only(market(offer("a/one", price="1.00"), offer("b/two"), offer("c/three", "fallback")), "c/three")
    inputs = replace(inputs, policy=replace(inputs.policy, fallback_cost_multiplier_limit=9))
    decision = select(inputs)
    assert decision.chosen == "c/three"
    assert fates(decision) == {"a/one": ("HUMAN-2", "rerouted"), "b/two": ("HUMAN-2", "rerouted")}
    assert fate_of(decision, "a/one").figures == "only supply c/three may serve this task"
    assert str(fate_of(decision, "a/one").quote.amount) == "1.00"
    assert "not looked at (2 rerouted)" in decision.steps[0]
    exact = select(only(inputs, "b/two"))
    assert fates(exact)["c/three"] == ("HUMAN-2", "rerouted")


def test_the_named_supply_passes_every_check():
    """HUMAN-2, COST-6, SEL-8, SEL-9, TIER-2: a named Supply is dropped and waited for as any other."""
    dear = market(offer("a/one", price="1.00"), offer("b/two", price="9.00"))
    decision = select(only(dear, "b/two"))
    assert (decision.verdict, decision.failure_code) == (Verdict.FAIL, "cost_limit_exceeded")
    ill = select(only(market(offer("a/one"), offer("b/two", health=OPEN)), "b/two"))
    assert (ill.verdict, ill.waiting_reason.split(" until")[0]) == (Verdict.WAIT, "health: supply b/two circuit_open")
    assert ill.alerts == ()
    full = select(only(market(offer("a/one"), offer("b/two", capacity=FULL)), "b/two"))
    assert full.waiting_reason == "capacity: supply b/two concurrency 5 of 5"
    strict = market(offer("a/one"), offer("b/two", "degraded"), given=FULL_INPUT, request_degradation="strict")
    assert select(only(strict, "b/two")).failure_code == "no_candidates"
    shown = market(
        offer("a/one"), offer("b/two", real_person=RealPerson.FORBIDDEN), given={**FULL_INPUT, "real_person": True}
    )
    assert select(only(shown, "b/two")).failure_code == "real_person_rejected"
    gone = select(only(market(offer("a/one")), "b/two"))
    assert gone.failure_code == "no_candidates"
    assert "only supply b/two may serve this task" in gone.failure_message


@given(markets(), st.data())
def test_naming_a_supply_makes_nothing_admissible(inputs: Inputs, data: st.DataObject):
    """HUMAN-2, COST-6, SEL-16, SEL-22: nobody else is chosen; what is chosen would be alone in a market that binds it
    with the same baseline; every Supply has one fate; the record replays byte for byte."""
    if not inputs.model.bindings:
        return
    name = data.draw(st.sampled_from([binding.supply for binding in inputs.model.bindings]))
    decision = select(only(inputs, name))
    assert decision.chosen in ("", name)
    assert sorted(fate.supply for fate in decision.fates) == sorted(b.supply for b in inputs.model.bindings)
    assert decision.baseline == select(inputs).baseline
    assert replays(record_text(only(inputs, name), decision))
    if decision.chosen:
        limit = inputs.policy.emergency_cost_limit if inputs.policy.emergency_availability else 50
        assert inputs.spent.amount + (inputs.quotes[name].amount or 0) <= limit


def test_a_record_from_before_terms_were_known_says_the_same():
    """SEL-22, CAT-2: without the field the inputs read as before, and the decision has the same bytes."""
    inputs = market(offer("a/one"), offer("b/two"))
    record = json.loads(record_text(inputs, select(inputs)))
    assert record["inputs"]["request"].pop("terms", "absent") is None
    old = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert recorded_inputs(old).request.terms is None
    assert replays(old)


async def test_a_named_supply_serves_replays_and_is_explained():
    """HUMAN-2, SEL-22, SEL-24: the Task goes to the Supply that the policy would not take, on the same one again after
    its failure, and its rounds replay byte for byte."""
    play = stage()
    play.provider.answers["b/clip"] = [BUSY]
    await play.ledger.declare("run", "t", "CNY", Money("CNY", Decimal(9)), "a production")
    await play.ledger.hold("h1", "run", Money("CNY", Decimal(9)), 2, "a node")
    await play.submit(terms=Terms(supply="b/clip", hold="h1"))
    await play.pass_time(8)
    task = await play.task()
    assert task.state is TaskState.SUCCEEDED
    assert [attempt.supply for attempt in task.attempts] == ["b/clip", "b/clip"]
    assert task.request.terms == Terms("b/clip", hold="h1")
    rounds = await replay_selection(play.desk, "t1", 0, "")
    assert len(rounds) >= 2
    assert all(item[-1].identical for item in rounds)
    explained = await explain_task(play.desk, "t1")
    assert "not looked at (1 rerouted)" in explained.steps[0]


async def test_fewer_attempts_than_the_policy_permits():
    """ATT-1, COST-9: one Attempt where the policy permits two; the explanation counts by the terms."""
    play = stage()
    play.provider.answers["a/clip"] = [BUSY]
    await play.submit(terms=Terms(max_attempts=1))
    await play.pass_time(4)
    task = await play.task()
    assert (task.state, len(task.attempts)) == (TaskState.FAILED, 1)
    explained = await explain_task(play.desk, "t1")
    assert explained.steps[3] == "At most 0 switches of supply: this is attempt 1 of 1."


def test_terms_never_permit_more_than_the_policy():
    """ATT-1: the smaller number holds; none said is the policy's."""
    assert Request("t", "m", {}).attempts_within(2) == 2
    assert Request("t", "m", {}, terms=Terms(max_attempts=9)).attempts_within(2) == 2
    assert Request("t", "m", {}, terms=Terms(max_attempts=1)).attempts_within(2) == 1
