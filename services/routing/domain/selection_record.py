"""What is kept of a selection, and its replay (SEL-22).

The record holds the frozen inputs and the decision as canonical JSON. Replaying reads the inputs alone, selects again,
and the decision must have the same bytes.
"""

import json

from libs.kernel.canonical import canonical_json
from services.routing.domain.decision import Decision, Inputs
from services.routing.domain.selection import select
from services.routing.domain.thaw import thaw

FORMAT = 1


def record(inputs: Inputs, decision: Decision) -> bytes:
    """Canonical JSON: `{"format", "inputs", "decision"}`."""
    return canonical_json({"format": FORMAT, "inputs": inputs, "decision": decision})


def recorded_inputs(saved: bytes | str) -> Inputs:
    """The inputs of a record."""
    return thaw(Inputs, json.loads(saved)["inputs"])


def recorded_decision(saved: bytes | str) -> Decision:
    """The decision of a record, as it was."""
    return thaw(Decision, json.loads(saved)["decision"])


def replay(saved: bytes | str) -> Decision:
    """Select again from the recorded inputs."""
    return select(recorded_inputs(saved))


def replays(saved: bytes | str) -> bool:
    """Whether the same decision comes out, byte for byte."""
    return canonical_json(replay(saved)) == canonical_json(json.loads(saved)["decision"])
