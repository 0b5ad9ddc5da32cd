"""The state of a Run from its events alone (EVENT-3)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from services.runs.domain.run import TERMINAL_KINDS, Event, NodeState, RunState

ENDS = {kind: state for state, kind in TERMINAL_KINDS.items()}
NODE_ENDS = {"node_completed": NodeState.SUCCEEDED, "node_failed": NodeState.FAILED}


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a Run's history says it is."""

    state: RunState = RunState.PENDING
    node_state: NodeState = NodeState.PENDING
    task_id: str = ""
    attempts: tuple[tuple[str, str], ...] = ()
    """(attempt id, `started` or its end), in order."""
    artifacts: tuple[str, ...] = ()
    cost: str = ""
    error_code: str = ""
    last_sequence: int = 0


def rebuild(events: Iterable[Event]) -> Rebuilt:
    """Fold the history. ValueError if the sequence has a gap or goes on after the end."""
    state = Rebuilt()
    for event in events:
        if event.sequence != state.last_sequence + 1:
            raise ValueError(f"event {event.sequence} follows {state.last_sequence}")
        if state.state in ENDS.values():
            raise ValueError(f"event {event.sequence} ({event.kind}) comes after the end")
        state = replace(_fold(state, event.kind, event.data), last_sequence=event.sequence)
    return state


def _fold(state: Rebuilt, kind: str, data: Mapping[str, Any]) -> Rebuilt:
    if kind == "run_started":
        return replace(state, state=RunState.RUNNING)
    if kind == "node_started":
        return replace(state, node_state=NodeState.RUNNING, task_id=data["task_id"])
    if kind == "attempt_started":
        return replace(state, attempts=(*state.attempts, (data["attempt_id"], "started")))
    if kind == "attempt_finished":
        ends = {data["attempt_id"]: data["state"]}
        return replace(state, attempts=tuple((name, ends.get(name, told)) for name, told in state.attempts))
    if kind == "artifact_written":
        return replace(state, artifacts=(*state.artifacts, data["sha256"]))
    if kind in NODE_ENDS:
        return replace(state, node_state=NODE_ENDS[kind])
    if kind in ENDS:
        return _end(state, ENDS[kind], data)
    return state


def _end(state: Rebuilt, end: RunState, data: Mapping[str, Any]) -> Rebuilt:
    node = NodeState.CANCELLED if state.node_state in (NodeState.PENDING, NodeState.RUNNING) else state.node_state
    cost = data["cost"]["amount"] if data["cost"] else ""
    code = data["error"]["code"] if data["error"] else ""
    return replace(state, state=end, node_state=node, cost=cost, error_code=code)
