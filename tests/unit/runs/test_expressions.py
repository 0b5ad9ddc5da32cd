"""`${…}` names what others gave, and becomes it."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runs.domain.expressions import (
    Given,
    Made,
    Malformed,
    Scope,
    Unresolved,
    listed,
    references,
    resolve,
    resolved_input,
)
from services.runs.domain.reading.production import read_plan, single_plan
from services.runs.domain.run import Artifact
from tests.unit.runs.documents import episode

FRAME, CLIP = Artifact("a" * 64, "image/png", 10), Artifact("b" * 64, "video/mp4", 20)
SCOPE = Scope(
    inputs={"title": "Dawn", "shots": [{"id": "A"}], "count": 3, "wide": True},
    item={"id": "S01", "prompt": "a quay", "ref": ["one", {"deep": "two"}]},
    given={
        "frame": Given((FRAME, CLIP), {"text": "hello", "n": 2}),
        "nothing": Given(),
        "shots": Given(items=(Made({"id": "S01", "mood": "calm"}, (FRAME,), {"x": 1}), Made({"id": "S02"}, (CLIP,)))),
    },
)


@pytest.mark.parametrize(
    "text, value",
    [
        ("${inputs.title}", "Dawn"),
        ("${inputs.shots}", [{"id": "A"}]),
        ("${inputs.count}", 3),
        ("${item.prompt}", "a quay"),
        ("${item.ref.0}", "one"),
        ("${item.ref.1.deep}", "two"),
        ("${frame.artifact}", {"artifact": "a" * 64}),
        ("${frame.artifact.artifact}", "a" * 64),
        ("${frame.artifacts}", [{"artifact": "a" * 64}, {"artifact": "b" * 64}]),
        ("${frame.artifacts.1}", {"artifact": "b" * 64}),
        ("${frame.output.text}", "hello"),
        ("${shots.artifacts}", [{"artifact": "a" * 64}, {"artifact": "b" * 64}]),
        ("${shots.items.0.mood}", "calm"),
        ("at ${inputs.title}: ${item.prompt} x${inputs.count} ${inputs.wide}", "at Dawn: a quay x3 true"),
        ("$${inputs.title} costs $5", "${inputs.title} costs $5"),
        ("$$${x}", "$${x}"),
        ("", ""),
    ],
)
def test_an_expression_becomes_what_it_names(text, value):
    """Alone it is the value itself; within a text it is text; escaped it is literal."""
    assert resolve(text, SCOPE) == value


def test_items_carry_what_they_made():
    """GATE-3: each item that succeeded has its own fields with its artifact, artifacts and output."""
    first = resolve("${shots.items}", SCOPE)[0]
    material = {"artifact": "a" * 64}
    assert first == {"id": "S01", "mood": "calm", "artifact": material, "artifacts": [material], "output": {"x": 1}}


@pytest.mark.parametrize(
    "text, told",
    [
        ("${inputs.tilte}", "there is title, shots, count, wide"),
        ("${inputs.shots.5}", "a list of 1"),
        ("${inputs.title.x}", "a value without fields"),
        ("${later.artifact}", "nothing of that name has finished; there is frame, nothing, shots"),
        ("${nothing.artifact}", "it gave no file"),
        ("${frame}", "artifact, artifacts, output"),
        ("${frame.items}", "artifact, artifacts, output"),
        ("${shots.output}", "items, artifacts"),
        ("x ${frame.artifact}", "let it stand alone"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(text, told):
    """An expression without a value names itself and the names that there are."""
    with pytest.raises(Unresolved, match=r"\$\{.*\}: ") as refused:
        resolve({"deep": [text]}, SCOPE)
    assert told in str(refused.value)


def test_an_item_is_there_only_in_a_map():
    """`item` outside of a map's node is refused, not empty."""
    with pytest.raises(Unresolved, match="within the `node` of a map"):
        resolve("${item.prompt}", Scope())


@pytest.mark.parametrize("text", ["${", "${}", "${a b}", "${a..b}", "${a.}", "x ${a.b", "${a.b]"])
def test_what_begins_as_an_expression_must_be_one(text):
    """A slip is refused rather than sent to a model."""
    with pytest.raises(Malformed, match=r"\$\$\{"):
        resolve(text, SCOPE)


def test_references_are_the_nodes_named():
    """The graph's edges: inputs, items and escapes are none."""
    value = {"a": ["${x.artifact} ${y.output.z}", "$${no.artifact}"], "b": "${inputs.t} ${item.u}", "c": 1}
    assert references(value) == {"x", "y"}


def test_a_single_generation_is_taken_literally():
    """RUN-1a: a prompt may hold `${`; only a production's input is resolved."""
    given = {"prompt": "${inputs.title} ${"}
    assert resolved_input(single_plan("m", given), "main", Scope()) == given
    plan, _ = read_plan(episode())
    assert resolved_input(plan, "keyframes/S01", SCOPE) == {"prompt": "a quay, Dawn", "size": "1280x720"}


@given(st.text())
def test_escaping_undoes_itself(text):
    """Any text can be said: with `${` written as `$${` it arrives as it was."""
    assert resolve(text.replace("${", "$${"), Scope()) == text


@given(st.text(alphabet="${}ab.", max_size=12))
def test_any_text_is_resolved_or_refused(text):
    """Whatever is written, the answer is a value or one of two refusals."""
    with suppress(Malformed, Unresolved):
        resolve(text, SCOPE)


def test_a_reason_looks_at_no_more_names_than_it_shows() -> None:
    """RUN-3, EDG-3: a document full of wrong names costs no more than one look at each."""
    names = (f"n{number}" for number in range(1000))
    assert listed(names) == "n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11 …"
    assert next(names) == "n13"
    assert (listed(["a", "b"]), listed([])) == ("a, b", "nothing")
