"""What a Run's end is told to the URL that it named, and how often. Pure.

Laws of this file:
- one message for each terminal event, with that event's id; it is made in the event's transaction and never changes;
- it says what reading the Run says, and no inputs: what a caller has sent is not passed on to a third party;
- only a 2xx takes a message; an address that may not be reached, and a 410, are not tried again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from libs.kernel.canonical import plain
from services.runs.domain import event_data
from services.runs.domain.run import TERMINAL_KINDS, Artifact, Event, Node, Result, Run

BACKOFF_S = (5.0, 30.0, 120.0, 600.0, 3600.0, 21600.0)
"""How long after the first, the second … sending that failed it is sent again."""
SECRETS_IN_FORCE = 2
TAKEN = range(200, 300)
GONE = 410
_TYPES = {kind: kind.replace("_", ".", 1) for kind in TERMINAL_KINDS.values()}


class CallbackState(StrEnum):
    """Where the sending of a message stands."""

    PENDING = "pending"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Callback:
    """One message. `attempts` counts its claims and fences late writers; `next_at` is when it is due again."""

    id: str
    run_id: str
    tenant: str
    type: str
    url: str
    body: str
    created_at: datetime
    next_at: datetime
    state: CallbackState = CallbackState.PENDING
    attempts: int = 0
    last_error: str = ""
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """How a sending went: the status of the answer, or 0 and why there was none. `final`: it is not tried again."""

    status: int = 0
    error: str = ""
    final: bool = False


def callback_of(run: Run, events: Sequence[Event]) -> Callback | None:
    """The message about the end of a Run, if that is among these events and the Run names a URL."""
    ends = [event for event in events if event.kind in _TYPES]
    if not ends or not run.order.callback_url:
        return None
    end = ends[-1]
    kind = _TYPES[end.kind]
    told = {"type": kind, "timestamp": end.created_at, "data": told_of(run)}
    body = json.dumps(plain(told), ensure_ascii=False, separators=(",", ":"))
    return Callback(end.id, run.id, run.tenant, kind, run.order.callback_url, body, end.created_at, end.created_at)


def told_of(run: Run) -> dict[str, Any]:
    """The Run as callers read it, without inputs."""
    return {
        "id": run.id,
        "status": run.state.value,
        "model": run.order.model or None,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "error": plain(run.failure),
        "result": _result(run.result) if run.result is not None else None,
        "usage": {
            "cost": event_data.money_json(run.usage.cost),
            "attempts": run.usage.attempts,
            "supply": run.usage.supply or None,
        },
        "nodes": [_node(node) for node in run.nodes.values()],
        "labels": dict(run.labels),
    }


def _result(result: Result) -> dict[str, Any]:
    return {
        "artifacts": [_artifact(artifact) for artifact in result.artifacts],
        "output": plain(result.output),
        "degraded": result.degraded,
        "requested_profile": result.requested_profile or None,
        "actual_profile": result.actual_profile or None,
        "dropped_inputs": list(result.dropped_inputs),
    }


def _artifact(artifact: Artifact) -> Mapping[str, Any]:
    return {
        "sha256": artifact.sha256,
        "media_type": artifact.media_type,
        "bytes": artifact.size_bytes,
        "url": f"/v1/artifacts/{artifact.sha256}",
    }


def _node(node: Node) -> dict[str, Any]:
    """A Task is named once routing has had it, as where a Run is read."""
    return {
        "id": node.id,
        "kind": node.kind,
        "status": node.state.value,
        "task_id": node.task_id if node.started_at is not None and not node.items else None,
        "artifacts": [_artifact(artifact) for artifact in node.artifacts],
        "error": plain(node.failure),
    }


def after_sending(callback: Callback, sent: Sent, now: datetime, share: float) -> Callback:
    """The message after a sending. `share` in [0, 1) spreads the next one over a tenth of the pause."""
    if sent.status in TAKEN:
        return replace(callback, state=CallbackState.DELIVERED, last_error="", finished_at=now)
    error = sent.error or f"answered with status {sent.status}"
    if sent.final or sent.status == GONE or callback.attempts > len(BACKOFF_S):
        return replace(callback, state=CallbackState.GIVEN_UP, last_error=error, finished_at=now)
    pause_s = BACKOFF_S[callback.attempts - 1] * (1 + share / 10)
    return replace(callback, last_error=error, next_at=now + timedelta(seconds=pause_s))
