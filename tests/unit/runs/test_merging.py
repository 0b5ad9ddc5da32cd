"""An input takes up steering and changes, and is known by what decides its result."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runs.domain.merging import changed, input_hash, steered

GIVEN = {"prompt": "a quay", "verse": "one\ntwo", "size": 4, "shots": [{"prompt": "x"}, "plain"], "tags": ["a"]}


@pytest.mark.parametrize(
    "path, data, after",
    [
        ("prompt", {"text": "at dawn"}, {"prompt": "a quay at dawn"}),
        ("verse", {"text": "three"}, {"verse": "one\ntwo\nthree"}),
        ("prompt", {"value": "a road"}, {"prompt": "a road"}),
        ("prompt", {"value": "a road", "text": "at dawn"}, {"prompt": "a road at dawn"}),
        ("size", {"value": 8}, {"size": 8}),
        ("size", {"text": "large"}, {"size": "large"}),
        ("mood", {"text": "calm"}, {"mood": "calm"}),
        ("look.light", {"value": "low"}, {"look": {"light": "low"}}),
        ("tags", {"text": "b"}, {"tags": ["a", "b"]}),
        ("shots.0.prompt", {"text": "y"}, {"shots": [{"prompt": "x y"}, "plain"]}),
        ("shots.7", {"value": "z"}, {}),
        ("prompt.deep", {"value": "z"}, {}),
        ("prompt", {"other": 1}, {}),
    ],
)
def test_steering_is_merged_by_its_path(path, data, after):
    """STEER-2: text is appended, a value replaces, and what is barred stays as it was."""
    assert steered(GIVEN, path, data) == {**GIVEN, **after}


def test_merging_leaves_the_input_alone():
    """STEER-2: the input before it is the record of what was sent before."""
    before = {"shots": [{"prompt": "x"}], "look": {"a": 1}}
    steered(before, "shots.0.prompt", {"text": "y"})
    changed(before, {"look": {"b": 2}})
    assert before == {"shots": [{"prompt": "x"}], "look": {"a": 1}}


def test_a_change_is_merged_field_by_field():
    """HUMAN-2: objects are merged, null takes away, lists and values replace."""
    before = {"a": {"b": 1, "c": 2}, "d": [1, 2], "e": 1}
    assert changed(before, {"a": {"c": None, "f": {"g": 3, "h": None}}, "d": [3]}) == {
        "a": {"b": 1, "f": {"g": 3}},
        "d": [3],
        "e": 1,
    }


def test_a_hash_changes_with_what_decides_the_result():
    """RUN-4: model, input, degradation, billing and the exact files count."""
    hashes = [
        input_hash("m", {"a": 1}),
        input_hash("n", {"a": 1}),
        input_hash("m", {"a": 2}),
        input_hash("m", {"a": 1}, degradation="strict"),
        input_hash("m", {"a": 1}, billing_mode="per_second"),
        input_hash("m", {"a": 1}, artifacts=["a" * 64]),
        input_hash("m", {"a": 1}, artifacts=["b" * 64, "a" * 64]),
        input_hash("m", {"a": 1}, artifacts=["a" * 64, "b" * 64]),
    ]
    assert len(set(hashes)) == len(hashes)


@given(st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4), max_size=5))
def test_a_hash_does_not_depend_on_the_order_of_fields(given_input):
    """RUN-4: canonical JSON: equal inputs have equal hashes."""
    assert input_hash("m", given_input) == input_hash("m", dict(reversed(given_input.items())))
