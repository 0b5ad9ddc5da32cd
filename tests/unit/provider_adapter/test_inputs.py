"""Inputs that come as JSON text: read where somebody looks, passed on as they came."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from services.provider_adapter.app.hiding import HIDDEN, hidden, without
from services.provider_adapter.domain.exchange import Phase, Reply
from services.provider_adapter.domain.inputs import JsonInput, encoded, holds, raw_fields
from services.provider_adapter.domain.judgement import judge
from services.provider_adapter.domain.table import FaultTable
from tests.support.worlds import START

TABLE = FaultTable("openai")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5))
def test_an_input_is_the_object_that_it_was(value: dict[str, Any]) -> None:
    """SYN-1: as a mapping it reads as it was sent, and passed on it is the same."""
    given_ = JsonInput(json.dumps(value).encode())
    assert dict(given_) == value
    assert {name: holds(given_, name) for name in value} == {name: bool(inner) for name, inner in value.items()}
    assert json.loads(encoded(raw_fields(given_))) == value
    assert "absent" * 2 not in given_


@pytest.mark.parametrize("text", [b"", b"[]", b'"a"', b"{", b'{"a":1}x', b"\xff", b"null"])
def test_what_is_no_object_is_refused(text: bytes) -> None:
    """SYN-2 ERR-2: by the name of the field."""
    with pytest.raises(Fault) as caught:
        JsonInput(text)
    assert (caught.value.code, caught.value.errors[0].pointer) == ("validation_failed", "/input")


def test_half_an_emoji_is_passed_on() -> None:
    """SYN-1: what a model once said may come back with the conversation, though no text of ours could hold it."""
    given_ = JsonInput(b'{"messages": [{"role": "user", "content": "\\ud83d"}], "n": 1}')
    assert given_["n"] == 1
    assert json.loads(encoded(raw_fields(given_))) == {"messages": [{"role": "user", "content": "\ud83d"}], "n": 1}


@given(st.text(max_size=40), st.text(min_size=4, max_size=60), st.text(max_size=40))
def test_what_a_user_wrote_is_hidden(before: str, private: str, after: str) -> None:
    """ERR-4: the whole of a private text, or 12 characters of it in a row, never come back."""
    told = without(before + private + after, [private])
    windows = {private[start : start + 12] for start in range(max(1, len(private) - 11))}
    assert not any(window in told for window in windows if window not in HIDDEN * 2)


@given(st.text("ab ", max_size=60), st.lists(st.text("ab ", max_size=50), max_size=6))
def test_one_long_private_text_or_many_short_ones_hide_the_same(words: str, private: list[str]) -> None:
    """ERR-4: whichever of words and text is gone through, every passage that both hold is hidden and nothing else."""
    marked = [False] * len(words)
    for text in private:
        length = min(len(text), 12)
        for start in range(len(words) - length + 1) if length >= 4 else ():
            if words[start : start + length] in text:
                marked[start : start + length] = [True] * length
    kept = "".join(letter for letter, mark in zip(words, marked, strict=True) if not mark)
    assert without(words, private).replace(HIDDEN, "") == kept


def test_what_is_said_of_a_field_names_the_field_and_not_its_value() -> None:
    """ERR-1 ERR-4: a caller may be told which role is wrong; what the caller wrote there, or named so, stays hidden."""
    given_ = {"messages": [{"role": "user", "content": "my secret plan"}], "tools": [{"name": "sell_the_company"}]}
    reply = Reply(
        400,
        {"content-type": "application/json"},
        encoded({"error": {"message": "a user may not say 'my secret plan'", "param": "tools.sell_the_company.role"}}),
    )
    fault = hidden(judge(reply, Phase.SUBMIT, TABLE, START), given_)
    assert (fault.code, fault.provider_message) == ("invalid_request", f"a user may not say '{HIDDEN}'")
    assert fault.metadata["param"] == f"tools.{HIDDEN}.role"


def test_a_choice_may_be_told_and_a_text_in_its_place_may_not() -> None:
    """ERR-1 ERR-4: which resolution is none is no secret; a sentence is one, wherever it stands."""
    said = "resolution 720p is not supported, size a harbour at dawn is none"
    given_ = {"resolution": "720p", "size": "a harbour at dawn", "prompt": {"ratio": "dawn"}}
    fault = hidden(Fault.of("invalid_request", provider_message=said), given_)
    assert fault.provider_message == f"resolution 720p is not supported, size {HIDDEN} is none"
