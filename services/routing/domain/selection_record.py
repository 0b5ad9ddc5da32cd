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
_BEFORE_DECISION = '{"decision":'
"""Keys are sorted: every record begins so."""


def record(inputs: Inputs, decision: Decision) -> bytes:
    """Canonical JSON: `{"format", "inputs", "decision"}`."""
    return canonical_json({"format": FORMAT, "inputs": inputs, "decision": decision})


def recorded_inputs(saved: bytes | str) -> Inputs:
    """The inputs of a record."""
    return thaw(Inputs, json.loads(saved)["inputs"])


def recorded_decision(saved: bytes | str) -> Decision:
    """The decision of a record, as it was."""
    return thaw(Decision, json.loads(saved)["decision"])


def decision_text(saved: str) -> str:
    """The decision of a record as it stands there, not read and written anew. ValueError if it is no record."""
    if not saved.startswith(_BEFORE_DECISION):
        raise ValueError("it does not begin with a decision")
    begin = len(_BEFORE_DECISION)
    _, end = json.JSONDecoder().raw_decode(saved, begin)
    json.loads(saved)  # what follows is whole as well
    return saved[begin:end]


def replay(saved: bytes | str) -> Decision:
    """Select again from the recorded inputs."""
    return select(recorded_inputs(saved))


def replays(saved: bytes | str) -> bool:
    """Whether the same decision comes out, byte for byte."""
    text = saved.decode() if isinstance(saved, bytes) else saved
    return canonical_json(replay(text)).decode() == decision_text(text)
