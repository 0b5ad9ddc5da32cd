"""Whatever JSON comes as the input of a call, the door names what is wrong with it or weighs it."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from libs.rpc.limits import ANSWER_LIMIT_BYTES
from services.routing.domain.calls.admission import (
    BATCHES_AT_MOST,
    NUMBERS_AT_MOST,
    beyond_an_answer,
    beyond_batches,
)
from services.routing.domain.calls.ends import refused
from services.routing.domain.calls.sizing import digest_of, facts_to_quote, rest_of, tokens_to_reserve
from services.routing.domain.catalog import Kind
from services.routing.domain.decision import Decision, Fate, Verdict
from services.routing.domain.input_shape import FIELDS, complaints, without
from tests.unit.routing.call_stage import chat_supply
from tests.unit.routing.selection_inputs import market, offer

SYNCHRONOUS = (Kind.CHAT, Kind.EMBEDDING, Kind.IMAGE, Kind.SPEECH, Kind.OCR)
NAMES = ("role", "content", "type", "text", "tool_calls", "function", "name", "arguments", "url", "image_url")

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=8,
)
messages = st.lists(
    st.fixed_dictionaries({"role": st.just("user")}, optional={"content": values, "tool_calls": values}), max_size=3
)


@st.composite
def inputs(draw: st.DrawFn) -> tuple[Kind, dict[str, Any]]:
    kind = draw(st.sampled_from(SYNCHRONOUS))
    found = draw(st.dictionaries(st.sampled_from(sorted(FIELDS[kind])), values, max_size=4))
    if kind is Kind.CHAT:
        found["messages"] = draw(messages)
    return kind, found


@given(inputs())
@example((Kind.EMBEDDING, {"input": ["a", 1]}))
@example((Kind.EMBEDDING, {"input": [[1], "a", None]}))
@example((Kind.CHAT, {"messages": [{"role": "user", "tool_calls": 5}]}))
def test_every_input_is_weighed_or_refused(given_: tuple[Kind, dict[str, Any]]):
    """EDG-3: no input ends in a fault of our own; what no field admits is named, the rest has its figures."""
    kind, asked = given_
    wrong = complaints(kind, asked)
    digest = digest_of(kind, without(asked, wrong, kind))
    supply = chat_supply("a/talk")
    assert facts_to_quote(kind, digest, supply).get("input_tokens", 0) >= 0
    assert tokens_to_reserve(kind, digest, supply) >= 0


@pytest.mark.parametrize(
    "texts, pointer",
    [
        (["a", 1], "/input/input/1"),
        ([1, "a"], "/input/input/0"),
        ([True], "/input/input/0"),
        ([[-1]], "/input/input/0"),
    ],
)
def test_texts_and_tokens_are_not_mixed(texts: list[Any], pointer: str):
    """SYN-11: what is to be embedded is texts, or the tokens of one or of each; a wrong one is named by its place."""
    assert [found for found, _ in complaints(Kind.EMBEDDING, {"input": texts})] == [pointer]


@pytest.mark.parametrize("texts", ["a", ["a", "b"], [1, 2], [[1], [2, 3]], ["a", [1, 2]]])
def test_texts_and_tokens_are_taken(texts: Any):
    """SYN-11: every form that OpenAI's clients send is taken."""
    assert complaints(Kind.EMBEDDING, {"input": texts}) == []


@pytest.mark.parametrize(
    "texts, dimensions, refused",
    [(2048, 3072, False), (3256, None, True), (100_000, None, True), (100_000, 1, False), (1, 1e300, False)],
)
def test_vectors_that_no_answer_carries_are_refused_before_they_are_paid_for(
    texts: int, dimensions: float | None, refused: bool
):
    """SYN-7 SYN-11: as many texts as fit one answer are taken, with as many numbers each as were asked for."""
    digest = digest_of(Kind.EMBEDDING, {"input": ["a"] * texts, "dimensions": dimensions})
    assert [pointer for pointer, _ in beyond_an_answer(Kind.EMBEDDING, digest)] == ["/input/input"] * refused
    assert NUMBERS_AT_MOST * 25 < ANSWER_LIMIT_BYTES


@pytest.mark.parametrize(
    "batches, texts, refused",
    [
        ([256], 256 * BATCHES_AT_MOST, False),
        ([256], 256 * BATCHES_AT_MOST + 1, True),
        ([1, 256], 1000, False),
        ([1, None], 1000, False),
        ([1], 1000, True),
    ],
)
def test_a_call_is_split_into_so_many_calls_and_no_more(batches: list[int | None], texts: int, refused: bool):
    """SYN-11: beyond what the roomiest Supply takes in as many calls, the request is refused and the figure named."""
    digest = digest_of(Kind.EMBEDDING, {"input": ["a"] * texts})
    bound = [
        chat_supply("a/v", kind=Kind.EMBEDDING, capabilities={"max_batch": most} if most else {}) for most in batches
    ]
    found = list(beyond_batches(bound, digest))
    assert [pointer for pointer, _ in found] == ["/input/input"] * refused
    assert all(f"at most {512 * max(filter(None, batches))} are taken" in reason for _, reason in found)


@given(st.lists(st.text(max_size=9) | st.lists(st.integers(0, 9), min_size=1), min_size=2, max_size=9), st.data())
def test_what_is_left_of_a_digest_is_the_digest_of_what_is_left(texts: list[Any], data: st.DataObject):
    """SYN-11: reckoned from the batch that is done, without another look at the texts that are not."""
    done = data.draw(st.integers(1, len(texts) - 1))
    whole = {"dimensions": 3, **digest_of(Kind.EMBEDDING, {"input": texts})}
    left = {"dimensions": 3, **digest_of(Kind.EMBEDDING, {"input": texts[done:]})}
    assert rest_of(whole, texts[:done]) == left


@pytest.mark.parametrize(
    "reason, pointer", [("capability", "/input"), ("billing_mode", "/options/billing_mode"), ("disabled", "")]
)
def test_what_no_supply_offers_is_the_callers_to_mend(reason: str, pointer: str):
    """COST-1 SYN-12: a billing mode that nobody bills by is refused by name, as a feature is; time cures neither."""
    step = "SEL-5" if pointer else "SEL-4"
    fates = (Fate("a/talk", "a", "exact", "dropped", step=step, reason=reason, figures="needs x, offers y"),)
    fault = refused(Decision(Verdict.FAIL, fates), market(offer("a/talk")))
    if pointer:
        assert (fault.code, [error.pointer for error in fault.errors]) == ("validation_failed", [pointer])
    else:
        assert fault.code == "no_sources"


@pytest.mark.parametrize(
    ("kind", "given_", "reason"),
    [
        (Kind.CHAT, {"messages": []}, "must not be empty"),
        (Kind.CHAT, {"messages": None}, "is required"),
        (Kind.EMBEDDING, {"input": ""}, "must not be empty"),
        (Kind.EMBEDDING, {}, "is required"),
    ],
)
def test_a_field_that_is_there_is_not_called_missing(kind: Kind, given_: dict[str, Any], reason: str):
    """EDG-1: what is empty is said to be."""
    ((pointer, said),) = complaints(kind, given_)
    assert (pointer, said) == ("/input/messages" if kind is Kind.CHAT else "/input/input", reason)
