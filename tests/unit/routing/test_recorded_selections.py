"""Decisions of the past: `tests/cases/selections/recorded.jsonl` holds records that were written before selection was
made fast, one a line, between them every step, reason, verdict, failure code and alert."""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.kernel.canonical import canonical_json
from services.routing.domain.catalog import Supply
from services.routing.domain.decision import Decision, HealthView, Inputs
from services.routing.domain.guardrails import _of_any_length, amount
from services.routing.domain.market import market_of
from services.routing.domain.replaying import replay_record
from services.routing.domain.selection import select
from services.routing.domain.selection_record import (
    FORMAT,
    decision_json,
    decision_text,
    record,
    record_text,
    recorded_decision,
    recorded_inputs,
)
from tests.unit.routing.selection_inputs import market, offer
from tests.unit.routing.test_selection_properties import markets

CASES = Path(__file__).parents[2] / "cases" / "selections" / "recorded.jsonl"
RECORDS = CASES.read_text(encoding="utf-8").splitlines()
REASONS = {
    "forbidden", "not_published", "model_limits", "source_not_configured", "rule_not_published", "draining", "disabled",
    "capability", "billing_mode", "real_person_forbidden", "restricted", "circuit_open", "probe_busy", "concurrency",
    "recovering", "requests", "tokens", "retry_after", "unpriced", "stable_cost_multiplier_limit",
    "fallback_cost_multiplier_limit", "absolute_cost_limit", "tried", "tier_not_reached", "strict",
}  # fmt: skip


@pytest.mark.parametrize("saved", RECORDS, ids=range(len(RECORDS)))
def test_decisions_of_the_past_replay_to_the_same_bytes(saved: str) -> None:
    """SEL-22: whatever made selection faster, a record from before replays, and its decision is written as it was."""
    assert replay_record(saved).difference is None
    inputs, decision = recorded_inputs(saved), recorded_decision(saved)
    assert decision_json(select(inputs)) == decision_json(decision) == decision_text(saved)
    assert recorded_inputs(record_text(inputs, decision)) == inputs


def test_the_past_holds_every_reason_there_is() -> None:
    """SEL-15a, SEL-16: a reason that no record shows would not be looked after."""
    fates = [fate for saved in RECORDS for fate in json.loads(saved)["decision"]["fates"]]
    assert {fate["reason"] for fate in fates if fate["reason"]} == REASONS


def test_what_is_kept_of_quotes_and_health_is_that_of_these_inputs() -> None:
    """SEL-22: quotes that come back as the same object are written from memory, equal ones that are not are not."""
    inputs = market(offer("a"), offer("b"))
    priced = {name: view._replace(amount=Decimal("5.0")) for name, view in inputs.quotes.items()}
    exact = {name: view._replace(amount=Decimal("5.000")) for name, view in inputs.quotes.items()}
    for quotes in (priced, exact, priced, {}, exact):
        for rate in (1.0, 0.5, None):
            given_now = replace(inputs, quotes=quotes, supply_health={"a": HealthView(success_rate=rate)})
            decision = select(given_now)
            whole = {"format": FORMAT, "inputs": given_now, "decision": decision}
            assert record(given_now, decision) == canonical_json(whole)


@given(markets())
def test_what_is_written_by_hand_is_the_canonical_json(inputs: Inputs) -> None:
    """SEL-22: the quick writer and the one for every value agree, whatever the market."""
    decision = select(inputs)
    assert record(inputs, decision) == canonical_json({"format": FORMAT, "inputs": inputs, "decision": decision})


@given(st.text(), st.text(), st.floats(0, 1) | st.sampled_from([0.0, 1.0, 1e-9]), st.integers(0, 40))
def test_whatever_words_come_from_others_are_written_as_json(word: str, id_: str, rate: float, samples: int) -> None:
    """SEL-22: quotation marks, controls and letters of every script in ids, states and explanations."""
    inputs = market(offer("a/x"), offer(f"b/{id_}"), given={"prompt": word, "duration_s": 5})
    quote = inputs.quotes["a/x"]._replace(explanation=word, rule_id=id_, kind=word)
    health = {"a/x": HealthView(word, 1, 2, None, rate, rate / 2, samples)}
    inputs = replace(inputs, quotes={**inputs.quotes, "a/x": quote}, supply_health=health)
    decision = select(inputs)
    assert record_text(inputs, decision) == json.dumps(
        json.loads(record_text(inputs, decision)), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    assert replay_record(record_text(inputs, decision)).identical


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9))
def test_an_amount_reads_the_same_by_either_way(value: Decimal) -> None:
    """COST-8: the short way of telling an amount says what the long one says."""
    assert amount(value) == _of_any_length(value)


def test_a_market_is_known_by_its_objects_alone() -> None:
    """SEL-19, CAT-2: the same objects are one market; any other object, however equal, is another one."""
    inputs = market(offer("a/x"), offer("b/y"))
    assert market_of(replace(inputs, quotes={})) is market_of(inputs)
    for part in ("supplies", "channels", "rules", "prices"):
        other: Mapping[str, Any] = dict(getattr(inputs, part))
        assert market_of(replace(inputs, **{part: other})) is not market_of(inputs)
    cheaper: dict[str, Supply] = {**inputs.supplies, "b/y": replace(inputs.supplies["b/y"], charges_on_failure=True)}
    assert record_text(replace(inputs, supplies=cheaper), select(inputs)) != record_text(inputs, select(inputs))


def test_every_field_of_inputs_and_decision_is_written() -> None:
    """SEL-16: a field that is added is in the record without being named to the writer."""
    inputs = market(offer("a/x"))
    saved = json.loads(record_text(inputs, select(inputs)))
    assert saved["inputs"].keys() == {field.name for field in fields(Inputs)}
    assert saved["decision"].keys() == {field.name for field in fields(Decision)}
