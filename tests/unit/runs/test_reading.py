"""A production document is accepted whole, or refused with everything that is wrong with it (RUN-3)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from services.runs.domain.plan import Canary, Check, Kind, NodeBudget, PlanBudget, Rank, ReviewLoad
from services.runs.domain.reading.ordering import in_order
from services.runs.domain.reading.production import read_plan, single_plan
from tests.tidy.tree import ROOT
from tests.unit.runs.documents import EPISODE, episode, leads_somewhere, put


def faults(document) -> dict[str, str]:
    """Pointer -> reason, of a document that is refused."""
    plan, found = read_plan(document)
    assert plan is None
    return dict(found)


def test_a_sound_document_is_a_plan():
    """RUN-3: budgets, gates, maps with canaries, checks and expressions are read as what they say."""
    plan, found = read_plan(episode())
    assert found == []
    assert plan.name == "episode-001"
    assert plan.budget == PlanBudget("CNY", Decimal("200.00"), Decimal("150.00"), review_minutes=120)
    assert list(plan.nodes) == ["approved", "keyframes", "qc", "motion", "assembly", "release"]
    assert plan.nodes["motion"].needs == ("qc", "keyframes")
    assert plan.nodes["assembly"].needs == ("motion",)
    assert plan.nodes["approved"].review.deadline == timedelta(hours=4)
    assert plan.nodes["release"].review.rank is Rank.RELEASE
    keyframes = plan.nodes["keyframes"]
    assert (keyframes.canary, keyframes.tolerate) == (Canary("shot_class", 1), 2)
    item = plan.spec("keyframes/S01")
    assert item.kind is Kind.GENERATE
    assert item.budget == NodeBudget(4, Decimal("2.00"), timedelta(minutes=30))
    assert item.consumes_steering == {"style": "prompt"}
    assert plan.nodes["qc"].checks == (Check("decodes"), Check("min_size", "1280x720"))
    assert plan.spec("motion/S01").checks[1].argument == {"reference": "${item.artifact}", "threshold": 0.85}


def test_the_document_of_the_guide_is_sound():
    """RUN-3: what the guide shows is accepted as it stands."""
    text = (ROOT / "docs/guides/productions.md").read_text().split("```yaml\n")[1].split("```")[0]
    plan, found = read_plan(yaml.safe_load(text))
    assert found == []
    assert plan.nodes["motion"].needs == ("keyframe_qc", "keyframes")


def test_nodes_come_after_what_they_need():
    """RUN-3: whatever the order of the document, a Plan's nodes stand in an order in which everything can be done."""
    document = episode()
    document["nodes"].reverse()
    plan, found = read_plan(document)
    assert found == []
    seen: set[str] = set()
    for spec in plan.nodes.values():
        assert set(spec.needs) <= seen
        seen.add(spec.id)


@pytest.mark.parametrize(
    "pointer, value, told, remedy",
    [
        ("/production", None, "/production", "is required"),
        ("/nodes/5/id", "a b", "/nodes/5/id", "letters"),
        ("/nodes/5/id", "inputs", "/nodes/5/id", "expressions use"),
        ("/nodes/5/id", "motion", "/nodes/5/id", "an id of its own"),
        ("/nodes/0/kind", "wait", "/nodes/0/kind", "must be one of generate, gate, check, map"),
        ("/nodes/0/needs", ["nobody"], "/nodes/0/needs", "names 'nobody', which is no node"),
        (
            "/nodes/0/needs",
            ["release"],
            "/nodes/0",
            "approved -> release -> assembly -> motion -> keyframes -> approved",
        ),
        ("/nodes/4/input", {"a": "${assembly.artifact}"}, "/nodes/4", "assembly -> assembly"),
        ("/nodes/4/input", {"a": {"b": "${nobody.artifact}"}}, "/nodes/4/input/a/b", "there is no node 'nobody'"),
        ("/nodes/4/input", {"a": "${inputs.tilte}"}, "/nodes/4/input/a", "there is title, shots"),
        ("/nodes/4/input", {"a": "${item.x}"}, "/nodes/4/input/a", "within the `node` of a map"),
        ("/nodes/4/input", {"a": "${motion.artifact}"}, "/nodes/4/input/a", "items, artifacts"),
        ("/nodes/4/input", {"a": "${qc.output}"}, "/nodes/4/input/a", "a check gives nothing"),
        ("/nodes/4/input", {"a": "see ${motion.artifacts}"}, "/nodes/4/input/a", "let it stand alone"),
        ("/nodes/4/input", {"a": "${motion"}, "/nodes/4/input/a", "$${"),
        (
            "/nodes/1/node/input/prompt",
            "${item.promt}",
            "/nodes/1/node/input/prompt",
            "in item S01, there is no 'promt'",
        ),
        ("/nodes/1/node/input/prompt", "${item.ref.1}", "/nodes/1/node/input/prompt", "in item S01, there is no 'ref'"),
        ("/nodes/3/node/input/first_frame", "${item.frame}", "/nodes/3/node/input/first_frame", "no 'frame'"),
        ("/nodes/1/node/consumes_steering", {"style": "input.look"}, "/nodes/1/node/consumes_steering/style", "'look'"),
        (
            "/nodes/1/node/consumes_steering",
            {"style": "prompt"},
            "/nodes/1/node/consumes_steering/style",
            "input.prompt",
        ),
        ("/nodes/4/compensation", "undo", "/nodes/4/compensation", "invalidate_artifact"),
        ("/nodes/4/prompt", "x", "/nodes/4/prompt", "is not a field of this"),
        ("/nodes/1/model", "x", "/nodes/1/model", "in its `node`"),
        ("/nodes/1/node/kind", "gate", "/nodes/1/node/kind", "an item is one generation"),
        ("/nodes/1/over", [], "/nodes/1/over", "at least one item"),
        ("/nodes/1/over/0", "S01", "/nodes/1/over/0", "must be an object"),
        ("/nodes/1/over/1/id", "S01", "/nodes/1/over/1/id", "an `id` of its own"),
        ("/nodes/1/canary/per", "mood", "/nodes/1/canary/per", "a field that no item has"),
        ("/nodes/1/canary/release", "never", "/nodes/1/canary/release", "auto, gate"),
        ("/nodes/1/tolerate/failures", -1, "/nodes/1/tolerate/failures", "from 0"),
        ("/nodes/2/checks", [], "/nodes/2/checks", "at least one check"),
        ("/nodes/2/checks/0", "sharp", "/nodes/2/checks/0", "known are decodes"),
        ("/nodes/2/checks/1", {"min_size": "large"}, "/nodes/2/checks/1/min_size", "1280x720"),
        ("/nodes/2/checks/1", {"text": "SALE"}, "/nodes/2/checks/1/text", "model of kind ocr"),
        ("/nodes/2/checks/1", {"streams": ["smell"]}, "/nodes/2/checks/1/streams/0", "video, audio, subtitle"),
        ("/nodes/2/subject", {"files": ["ab" * 32]}, "/nodes/2/subject/files/0", "write {artifact: ababab"),
        ("/budget/cost", "a lot", "/budget/cost", "decimal amount"),
        ("/budget/soft", "300", "/budget/soft", "must not be above `cost`"),
        ("/budget/soft_review_minutes", 121, "/budget/soft_review_minutes", "must not be above `review_minutes`"),
        ("/reviews", {"minutes": 0}, "/reviews/minutes", "whole number from 1"),
        ("/nodes/0/value_class", "hera", "/nodes/0/value_class", "must be one of hero"),
        ("/budget", {"currency": "CNY"}, "/budget/cost", "neither `attempts` nor `parent`"),
        ("/budget", None, "/budget", "keyframes, motion, assembly must be paid"),
        ("/deadline", "soon", "/deadline", "2d"),
        ("/reviews", {"most": 5, "resume": 5}, "/reviews/resume", "below `most`"),
        ("/concurrency", 1.5, "/concurrency", "whole number"),
        ("/concurency", 1, "/concurency", "known here are budget"),
        ("/inputs/much", float("inf"), "/inputs/much", "beyond what is exact"),
    ],
)
def test_what_is_wrong_is_told_where_it_stands_with_the_remedy(pointer, value, told, remedy):
    """RUN-3: one thing wrong is one fault, at its place, and its reason says what to write."""
    document = put(episode(), pointer, value)
    found = faults(document)
    assert list(found) == ["/production" + told]
    assert remedy in found["/production" + told]
    assert leads_somewhere(document, "/production" + told)


def test_all_faults_are_told_at_once():
    """RUN-3: a bad document is refused with all its faults."""
    document = put(put(episode(), "/nodes/4/compensation", "undo"), "/nodes/1/node/model", "")
    document = put(put(document, "/budget/currency", "yuan"), "/nodes/2/needs", ["a", "b"])
    assert set(faults(document)) == {
        "/production/nodes/4/compensation",
        "/production/nodes/1/node/model",
        "/production/budget/currency",
        "/production/nodes/2/needs",
    }


def test_a_check_has_something_to_look_at():
    """RUN-3, GATE-1: needs, a file or an expression in its subject; words alone are none."""
    check = {"id": "looked", "kind": "check", "checks": ["decodes"]}
    alone = {"production": "p", "nodes": [check]}
    assert "must name what is checked" in faults(alone)["/production/nodes/0/needs"]
    check["subject"] = {"title": "x"}
    assert "holds no file to look at" in faults(alone)["/production/nodes/0/subject"]
    for subject in ({"artifact": "ab" * 32}, ["${inputs.logo}"]):
        check["subject"] = subject
        assert read_plan({**alone, "inputs": {"logo": {"artifact": "ab" * 32}}})[1] == []


def test_every_circle_is_named():
    """RUN-3: two circles are two faults, and what only hangs on one is not blamed."""
    order, circles = in_order({"a": ["b"], "b": ["a"], "c": ["a"], "d": ["d"], "e": ["c", "d"], "f": []})
    assert sorted(map(sorted, circles)) == [["a", "b"], ["d"]]
    assert sorted(order) == list("abcdef")


def test_items_may_stand_in_the_inputs():
    """GATE-3: a map over a list of the inputs is checked like one that is written out."""
    document = put(episode(), "/nodes/1/over", "${inputs.shots}")
    assert read_plan(document)[1] == []
    document = put(document, "/inputs/shots/1", "sky")
    assert faults(document) == {"/production/inputs/shots/1": 'must be an object, for example {id: S01, prompt: "…"}'}


def test_a_document_that_is_too_large_or_too_deep_is_not_looked_at():
    """RUN-3: 2,000 nodes with items, 32 levels; beyond that there is one fault."""
    large = episode() | {"nodes": [{"id": f"n{index}", "kind": "gate"} for index in range(2001)]}
    assert list(faults(large)) == ["/production/nodes"]
    deep: list = []
    for _ in range(20_000):
        deep = [deep]
    assert "32 levels" in faults(episode() | {"inputs": {"deep": deep}})["/production"]


def test_a_long_chain_of_maps_is_read():
    """RUN-3: nothing in reading grows with the depth of a graph but its length."""
    node = {"kind": "generate", "model": "m", "input": {"a": "${item.artifact}"}}
    first = {"id": "m0", "kind": "map", "over": [{"id": "a"}], "node": {**node, "input": {}}}
    chain = [{"id": f"m{i}", "kind": "map", "over": f"${{m{i - 1}.items}}", "node": node} for i in range(1, 1500)]
    plan, found = read_plan(episode() | {"nodes": [first, *chain]})
    assert found == []
    assert len(plan.nodes) == 1500


def test_a_gate_alone_costs_nothing():
    """RUN-3: only paid nodes need a budget."""
    plan, found = read_plan({"production": "p", "nodes": [{"id": "g", "kind": "gate"}], "deadline": "2d"})
    assert found == []
    assert (plan.budget, plan.deadline, plan.reviews) == (None, timedelta(days=2), ReviewLoad())


@pytest.mark.parametrize(
    "text, meant", [("90s", 90), ("30m", 1800), ("4h", 14400), ("1.5h", 5400), ("2d", 172800), (45, 45), ("45", 45)]
)
def test_durations_are_written_as_people_write_them(text, meant):
    """RUN-3: a deadline has its unit, or is in seconds."""
    plan, _ = read_plan(episode() | {"deadline": text})
    assert plan.deadline == timedelta(seconds=meant)


def test_a_deadline_may_be_a_time():
    """RUN-3: with its zone; a time without one is refused."""
    plan, _ = read_plan(episode() | {"deadline": "2027-01-31T18:00:00+08:00"})
    assert plan.deadline == datetime(2027, 1, 31, 10, tzinfo=UTC)
    assert list(faults(episode() | {"deadline": "2027-01-31T18:00:00"})) == ["/production/deadline"]


@pytest.mark.parametrize("cost, meant", [("0.10", "0.10"), (0.1, "0.1"), (200, "200")])
def test_amounts_are_exact(cost, meant):
    """RUN-3: what was written is what is meant, also as a number."""
    plan, _ = read_plan(put(put(episode(), "/budget/cost", cost), "/budget/soft", None))
    assert plan.budget.cost == Decimal(meant)


def test_a_single_generation_is_a_plan_of_one_node():
    """RUN-1a: made from `model`, paid from the budget that was named."""
    plan = single_plan("m", {"prompt": "x"}, degradation="strict", budget_id="b1")
    assert (plan.single, list(plan.nodes), plan.budget.parent) == (True, ["main"], "b1")
    assert plan.spec("main").degradation == "strict"
    assert single_plan("m", {}).budget is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["${a.b}", "4h"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def pointers(value, pointer=""):
    """Every place in a document."""
    yield pointer
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from pointers(inner, f"{pointer}/{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from pointers(inner, f"{pointer}/{index}")


PLACES = [pointer for pointer in pointers(EPISODE) if pointer]


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_anything_is_a_plan_or_faults(document):
    """RUN-3: no document ends reading, and every fault stands somewhere in it."""
    plan, found = read_plan(document)
    assert (plan is None) == bool(found)
    assert all(leads_somewhere(document, pointer) for pointer, _ in found)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), JSON), min_size=1, max_size=3))
def test_a_spoilt_document_is_a_plan_or_faults(changes):
    """RUN-3: a sound document with anything anywhere is accepted or refused by pointers that lead somewhere."""
    document = episode()
    for pointer, value in changes:
        try:
            put(document, pointer, value)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            continue  # an earlier change took the place away
    plan, found = read_plan(document)
    assert (plan is None) == bool(found)
    assert all(leads_somewhere(document, pointer) for pointer, _ in found), found
    assert all(reason and not reason.endswith(".") for _, reason in found)
