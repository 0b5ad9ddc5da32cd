"""How urgent a node of a production is."""

from services.runs.domain.reading.production import read_plan, single_plan
from services.runs.domain.run import Node
from services.runs.domain.urgency import Urgency, urgency
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
