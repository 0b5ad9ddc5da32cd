"""Replays: what was decided is decided again to the same bytes, and a record that was touched is found out."""

import json
from dataclasses import replace
from datetime import timedelta, timezone
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from libs.kernel.canonical import canonical_json
from services.routing.domain.catalog import DegradationRule, Kind, Price
from services.routing.domain.decision import HealthView, Inputs, QuoteView
from services.routing.domain.replaying import replay_record
from services.routing.domain.selection import select
from services.routing.domain.selection_record import recorded_decision, recorded_inputs
from tests.unit.routing.replay_records import saved
from tests.unit.routing.selection_inputs import FULL_INPUT, NOW, market, offer
from tests.unit.routing.test_selection_properties import markets

FACTORS = ("1.5", "1E+1", "1.50", "0", "1e0", "15E-1", "1.000000001")
AMOUNTS = ("5", "5.00", "5E+0", "1E+1", "0.000000001", "123456789.123456789", None)
NUMBERS = (5, 5.0, 4.25, 15, 15.0, 1e1)


@given(markets())
def test_every_decision_replays(inputs: Inputs) -> None:
    """SEL-22: byte for byte, whatever the market; and the record of the replay is the record."""
    text = saved(inputs)
    assert replay_record(text).identical
    again = recorded_inputs(text)
    assert saved(again) == text
    assert recorded_decision(text) == select(again)


@given(markets())
def test_a_foreign_spelling_of_the_inputs_changes_nothing(inputs: Inputs) -> None:
    """SEL-22: a store that spells, spaces or orders the inputs in its own way, with the decision as it was."""
    text = saved(inputs)
    record = json.loads(text)
    end = text.rindex(',"format":1,"inputs":')
    turned = {name: record["inputs"][name] for name in reversed(record["inputs"])}
    assert replay_record(f'{text[:end]}, "format": 1, "inputs": {json.dumps(turned, indent=1)}}}').identical


@st.composite
def numerous(draw: st.DrawFn) -> Inputs:
    """Inputs whose numbers come in every spelling: floats that are whole, decimals with exponents, nothing at all."""
    low, high = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(NUMBERS))
    shape = {"duration_s": {"min": low, "max": high}, "inputs": {"reference_images": draw(st.integers(0, 9))}}
    bound = [
        offer(
            f"{channel}/x",
            draw(st.sampled_from(["exact", "fallback"])),
            capabilities=draw(st.sampled_from([shape, {}])),
            charges_on_failure=draw(st.booleans()),
        )
        for channel in "abc"
    ]
    amounts = {o["supply"].id: draw(st.sampled_from(AMOUNTS)) for o in bound}
    quotes = {
        name: QuoteView(unpriced_reason="no rule") if text is None else QuoteView(amount=Decimal(text))
        for name, text in amounts.items()
    }
    rate = st.none() | st.floats(0, 1)
    offset = timezone(timedelta(hours=draw(st.integers(-11, 13))))
    health = {
        o["supply"].id: HealthView(
            state=draw(st.sampled_from(["healthy", "circuit_open"])),
            success_rate=draw(rate),
            success_rate_low=draw(rate),
            samples=draw(st.integers(0, 40)),
            cooldown_until=draw(st.none() | st.just(NOW.astimezone(offset) + timedelta(microseconds=1))),
        )
        for o in bound
    }
    given_input: dict[str, Any] = {"prompt": draw(st.text(max_size=8)), "duration_s": draw(st.sampled_from(NUMBERS))}
    given_input |= {"seed": draw(st.sampled_from([None, 0, -0.0, 7, 2**60, 1e300])), "ratio": None}
    return replace(
        market(
            *bound,
            given=given_input,
            policy_stable_cost_multiplier_limit=Decimal(draw(st.sampled_from(FACTORS))),
            policy_fallback_cost_multiplier_limit=Decimal(draw(st.sampled_from(FACTORS))),
            policy_new_attempt_window_s=draw(st.sampled_from([1200, 1200.0, 0.5])),
        ),
        quotes=quotes,
        supply_health=health,
        now=NOW.astimezone(offset),
    )


@given(numerous())
def test_the_spelling_of_numbers_and_times_does_not_matter(inputs: Inputs) -> None:
    """SEL-22: floats that are whole, decimals with exponents, missing rates, times of other zones: the same bytes."""
    assert replay_record(saved(inputs)).identical


def test_the_order_of_a_rules_fields_does_not_matter() -> None:
    """SEL-22, TIER-5: a store keeps no order of names, so what a rule cut short is named in an order of its own."""
    rule = DegradationRule(
        "r933-900", 1, "933", "900", verified=True, published=True,
        clamp={"reference_videos": {"max": 1.0}, "reference_images": {"max": 2}, "duration_s": {"max": 4.0}},
    )  # fmt: skip
    inputs = replace(market(offer("a/x", "degraded", capabilities={}), given=FULL_INPUT), rules={rule.id: rule})
    assert select(inputs).dropped_inputs == ("reference_images[2:]", "reference_videos[1:]")
    assert replay_record(saved(inputs)).identical


def test_every_kind_replays() -> None:
    """SEL-22: embeddings, chats, speech and pages too, refused or served."""
    cases: dict[Kind, dict[str, Any]] = {
        Kind.EMBEDDING: {"input": ["a", "b"], "dimensions": 512.0},
        Kind.CHAT: {"messages": [{"role": "user", "content": "hello" * 900}], "max_tokens": 9.0},
        Kind.SPEECH: {"text": "hello", "voice": "x"},
        Kind.OCR: {"task": "parse_layout"},
        Kind.IMAGE: {"prompt": "p", "n": 3.0, "size": "1x1"},
    }
    shape = {"dimensions": [256, 1024.0], "context_tokens": 1000.0, "max_characters": 3, "voices": ["y"],
             "tasks": ["recognize_text"], "n_max": 2.0}  # fmt: skip
    for kind, asked in cases.items():
        price = {"p": Price("p", 1, 1, "CNY", "per_request")}
        for capabilities in (shape, {}):
            bound = offer("a/x", kind=kind, capabilities=capabilities, prices=("p",))
            inputs = market(bound, given=asked, model_kind=kind, request_billing_mode="per_request", prices=price)
            assert replay_record(saved(inputs)).identical, kind


def test_the_first_difference_is_named() -> None:
    """SEL-22: a decision that was touched is not identical, and the place is told with both values."""
    text = saved(market(offer("a/x"), offer("b/y", price="6.00")))
    touched = text.replace('"rank":2', '"rank":3', 1)
    found = replay_record(touched).difference
    assert found is not None
    assert (found.pointer, found.recorded, found.replayed) == ("/fates/1/rank", "3", "2")
    assert replay_record(text).digest != replay_record(touched).digest
    record = json.loads(text)
    del record["decision"]["rule"]
    record["decision"]["dropped_inputs"] = ["more"]
    found = replay_record(canonical_json(record).decode()).difference
    assert found is not None
    assert (found.pointer, found.recorded, found.replayed) == ("/dropped_inputs/0", '"more"', "")


def test_touched_inputs_are_found_out() -> None:
    """SEL-22: the inputs are what decides: another quote in the record, another decision."""
    text = saved(market(offer("a/x", price="5.00"), offer("b/y", price="6.00")))
    head, inputs = text.split(',"inputs":')
    found = replay_record(f'{head},"inputs":{inputs.replace("5.00", "7.00")}').difference
    assert found is not None
    assert found.pointer == "/baseline/amount"


def test_another_spelling_of_the_decision_is_not_identical() -> None:
    """SEL-22: bytes are compared, not values."""
    text = saved(market(offer("a/x")))
    assert not replay_record(text.replace('{"decision":{', '{"decision":{ ', 1)).identical
    assert not replay_record(f" {text}").identical


def test_what_is_no_record_is_told() -> None:
    """SEL-22: a torn record, one of another format and one that lacks an input are differences with a reason."""
    text = saved(market(offer("a/x")))
    for wrong, words in (
        (text[:-9], "no record"),
        ("", "no record"),
        (text.replace('"format":1', '"format":2'), "this release reads format 1"),
        (text.replace('"currency":"CNY","global', '"global'), "KeyError: 'Inputs.currency'"),
    ):
        found = replay_record(wrong).difference
        assert found is not None
        assert words in found.replayed
