"""How urgent a node of a production is."""

from services.runs.domain.reading.production import read_plan, single_plan
from services.runs.domain.run import Node
from services.runs.domain.urgency import Urgency, urgency
from tests.unit.runs.test_gates import production
from tests.unit.runs.test_productions import episode


def test_what_holds_up_the_release_is_told() -> None:
    """PRIO-1: depth, degree of blocking and the release are read from the plan, alike for every item of a map."""
    document = episode()
    document["nodes"][-1]["rank"] = "release"
    plan, faults = read_plan(document)
    assert plan is not None, faults
    assert urgency(plan, Node("frames/S01", "generate", parent="frames")) == Urgency(1, 4, False)
    assert urgency(plan, Node("motion/S03", "generate", parent="motion")) == Urgency(3, 2, False)
    assert urgency(plan, Node("film", "generate")) == Urgency(4, 1, True)
    assert urgency(single_plan("clip", {}), Node("main", "generate")) == Urgency()


def test_many_ways_to_one_end_are_one_look() -> None:
    """PRIO-1: where every gate of a stage needs both of the stage before, 2**60 ways lead through the plan, and the
    hand-over of its first node looks at each gate once."""
    frame = {"id": "frame", "kind": "generate", "model": "frame", "input": {"prompt": "a boat"}}
    gates = [
        {"id": f"{side}{stage}", "kind": "gate", "needs": [f"a{stage - 1}", f"b{stage - 1}"] if stage else ["frame"]}
        for stage in range(60)
        for side in "ab"
    ]
    clip = {**frame, "id": "clip", "needs": ["a59"]}
    end = {"id": "end", "kind": "gate", "rank": "release", "needs": ["clip"]}
    plan, faults = read_plan(production(frame, *gates, clip, end))
    assert plan is not None, faults
    assert urgency(plan, Node("frame", "generate")) == Urgency(0, 122, False)
    assert urgency(plan, Node("clip", "generate")) == Urgency(61, 1, True)
