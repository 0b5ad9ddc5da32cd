"""Values that come in, whatever they mean."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from libs.kernel.surrogates import halves_in
from services.edge.domain.json_values import (
    LARGEST_WHOLE,
    Reader,
    check_depth,
    check_members,
    check_names,
    check_values,
    pointer_to,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_WHOLE, LARGEST_WHOLE)
    | st.floats(allow_nan=False)
    | st.text("ab~/"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab~/", max_size=3), inner, max_size=4),
)


def resolve(value: Any, pointer: str) -> Any:
    """The value that a JSON pointer leads to (RFC 6901)."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


@given(JSON)
def test_ordinary_values_pass(value: Any) -> None:
    """EDG-3: what holds no NUL and no number beyond a double is never refused."""
    check_values(value)


@given(JSON, st.sampled_from(["\x00", "a\x00b", 2**53 + 1, -(2**60)]), st.randoms())
def test_bad_values_are_named_by_pointer(value: Any, bad: Any, random: Any) -> None:
    """EDG-1: wherever a bad value stands, the pointer of the error leads to it."""
    target = value
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for name, item in pairs:
            places.append((node, name))
            walk(item)

    walk(target)
    if places:
        holder, name = random.choice(places)
        holder[name] = bad
    else:
        target = bad
    with pytest.raises(Fault) as caught:
        check_values(target)
    assert [resolve(target, error.pointer) for error in caught.value.errors] == [bad]


def test_a_name_with_nul_is_refused() -> None:
    """EDG-3: NUL is refused in names too."""
    with pytest.raises(Fault) as caught:
        check_values({"a\x00": 1})
    assert "NUL" in caught.value.errors[0].reason


def test_many_errors_are_cut() -> None:
    """EDG-1: no more errors are told than a caller can use."""
    with pytest.raises(Fault) as caught:
        check_values(["\x00"] * 1000)
    assert len(caught.value.errors) == 25


def test_depth_is_bounded() -> None:
    """EDG-3: 64 levels are walked, 65 are refused as unreadable, without recursion."""
    deep: Any = "x"
    for _ in range(64):
        deep = [deep]
    check_depth(deep)
    with pytest.raises(Fault) as caught:
        check_depth([[deep]])
    assert caught.value.code == "malformed_request"


@given(st.text())
def test_pointers_escape(name: str) -> None:
    """EDG-1: a pointer leads to its member whatever the name."""
    assert resolve({name: "found"}, pointer_to("", name)) == "found"


def test_a_reader_collects_everything() -> None:
    """EDG-1: one answer names every fault of a body, unknown fields included."""
    reader = Reader({"text": 1, "choice": "x", "time": "soon", "list": [1], "object": 3, "more": 0})
    reader.text("text")
    reader.choice("choice", ("a", "b"))
    reader.seconds("time", 1, 2)
    reader.texts("list")
    reader.object("object")
    reader.text("missing", required=True)
    with pytest.raises(Fault) as caught:
        reader.finish()
    pointers = [error.pointer for error in caught.value.errors]
    assert pointers == ["/choice", "/list", "/missing", "/more", "/object", "/text", "/time"]


@pytest.mark.parametrize("value", [True, "3", 0.5, 11, None, float("inf")])
def test_seconds_are_numbers_within_bounds(value: Any) -> None:
    """EDG-1: a time is a number within its bounds; null is none at all."""
    reader = Reader({"s": value})
    assert reader.seconds("s", 1, 10) is None
    assert bool(reader.errors) == (value is not None)


@given(JSON, st.sampled_from(["\ud83d", "a\ude00b", "\ud83d\u0041"]), st.randoms())
def test_half_a_character_is_named_by_pointer(value: Any, bad: str, random: Any) -> None:
    """EDG-3: wherever it stands, the pointer leads to it; where none stands, nothing is said."""
    assert halves_in(json.dumps(value).encode()) == []
    whole: Any = {"a": value, "/~": [value, bad]} if random.random() < 0.5 else [value, {"": [bad]}]
    ((pointer, reason),) = halves_in(json.dumps(whole).encode())
    assert resolve(whole, pointer) == bad
    assert reason.isascii()
    assert halves_in(json.dumps(whole).encode()[:-1]) == []


COLONS = st.recursive(
    st.none() | st.integers(-LARGEST_WHOLE, LARGEST_WHOLE) | st.text('a:"\\u\u00e9{'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a:"\\u', max_size=3), inner, max_size=4),
)


@given(st.dictionaries(st.text('a:"\\', max_size=3), COLONS, max_size=4), st.booleans(), st.sampled_from((None, 1)))
def test_what_names_each_member_once_is_taken(value: dict[str, Any], ascii: bool, indent: int | None) -> None:
    """EDG-3: no value is refused for the colons or escapes in its texts and names, however it is laid out."""
    raw = json.dumps(value, ensure_ascii=ascii, indent=indent).encode()
    for spelt in (raw, raw.replace(b"a", b"\\u0061"), raw.replace(b":", b" : ")):
        check_members(spelt, msgspec.json.decode(spelt))
        check_names(spelt, msgspec.json.decode(spelt, type=dict[str, msgspec.Raw]))


@pytest.mark.parametrize(
    "raw, top",
    [
        (b'{"a":1,"a":2}', True),
        (b'{"a" :1,\n"b":{}, "a"\t: [":"]}', True),
        (b'{"a":"\\u003a","a":2}', True),
        (b'{"a":2,"\\u0061":"x"}', True),
        (b'{"a":{"b":1,"b":"::"}}', False),
        (b'{"a":[{"b":1},{"b":1,"c":"\\u003A","b":1}]}', False),
        (b'{"n":' + b"9" * 5000 + b',"n":1}', True),
    ],
)
def test_what_names_a_member_twice_is_refused(raw: bytes, top: bool) -> None:
    """EDG-3: a member that is named twice is malformed, at any depth where values are read and at the top where they
    are passed on; also where escapes make up for its colon."""
    fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    if top:
        with pytest.raises(Fault, match="more than once; name it once") as caught:
            check_names(raw, fields)
        assert caught.value.code == "malformed_request"
    else:
        check_names(raw, fields)
    if b"9999" not in raw:
        with pytest.raises(Fault, match="more than once; name it once"):
            check_members(raw, msgspec.json.decode(raw))
