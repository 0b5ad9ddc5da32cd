"""Answers in JSON that strict readers do not take, and what they become."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.provider_adapter.domain.inputs import encoded
from services.provider_adapter.domain.outputs import readable

SURROGATES = st.text(st.characters(categories=["Cs", "Lu", "So"]), max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | SURROGATES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SURROGATES, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(SURROGATES, VALUES, max_size=3))
def test_every_answer_can_be_read(value: dict[str, Any]) -> None:
    """SYN-7: what a model was paid to say reaches its caller, also where JSON of the strict kind has no word for it."""
    assert isinstance(msgspec.json.decode(readable(json.dumps(value).encode())), dict)
    assert isinstance(msgspec.json.decode(encoded(value)), dict)


@pytest.mark.parametrize(
    "said, read",
    [
        (b'{"a":"x\\ud800y"}', b'{"a":"x\xef\xbf\xbdy"}'),
        (b'{"a":"\\udc00"}', b'{"a":"\xef\xbf\xbd"}'),
        (b'{"a":[-Infinity,NaN]}', b'{"a":[null,null]}'),
    ],
)
def test_what_cannot_be_said_is_marked(said: bytes, read: bytes) -> None:
    """SYN-7: half a character becomes U+FFFD, a number that is none null."""
    assert readable(said) == read


@pytest.mark.parametrize("said", [b'{"a": "\\ud83d\\ude00"}', b'{"a": "NaN"}', b'{ "a" : 1 }'])
def test_a_sound_answer_passes_as_it_came(said: bytes) -> None:
    """SYN-1: nothing else is touched."""
    assert readable(said) is said
