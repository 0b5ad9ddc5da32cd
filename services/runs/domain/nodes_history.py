"""What each event makes of the node that it names. Pure steps for `history`; the same laws hold."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from services.runs.domain import amounts, event_data
from services.runs.domain.plan import Kind
from services.runs.domain.run import ENDED_NODES, Failure, Hold, Node, NodeState

Data = Mapping[str, Any]
NodeStep = Callable[[Node, Data, datetime], Node]


def _ready(node: Node, data: Data, at: datetime) -> Node:
    """A try begins: its intent, with everything that it will be submitted with, is on record."""
    if "items" in data:
        ids = tuple(f"{node.id}/{item['id']}" for item in data["items"])
        return replace(node, items=ids, input_hash=data["input_hash"], state=NodeState.LEASED, waiting_reason="")
    task_id = data.get("task_id", "")
    return replace(
        node,
        state=NodeState.LEASED,
        tries=node.tries + 1,
        task_id=task_id,
        task_ids=(*node.task_ids, task_id) if task_id else node.task_ids,
        attempts={},
        made=(),
        input=data.get("input") or {},
        input_hash=data.get("input_hash", ""),
        steered=data.get("steered", 0),
        waiting_reason="",
        retry_at=None,
        refused=False,
        refused_by="",
        lacks={},
        fewer=data.get("fewer", False),
        began_at=node.began_at or at,
        finished_at=None,
    )


def _started(node: Node, data: Data, at: datetime) -> Node:
    return replace(node, state=NodeState.RUNNING, task_id=data.get("task_id", ""), waiting_reason="", started_at=at)


def _waiting(node: Node, data: Data, _at: datetime) -> Node:
    node = replace(node, waiting_reason=data["reason"])
    if "state" in data:
        node = replace(node, state=NodeState(data["state"]))
    if data.get("error"):
        node = replace(node, failures=(*node.failures, Failure(**data["error"])))
    if "refused" in data:
        lacks = data.get("lacks") or {}
        node = replace(node, refused=data["refused"], refused_by=data.get("root_cause", ""), lacks=lacks)
    if "cost" in data:
        node = replace(node, cost=event_data.money(data["cost"]))
    return replace(node, retry_at=event_data.time(data.get("retry_at")))


def _held(node: Node, data: Data, _at: datetime) -> Node:
    amount = event_data.money(data["amount"])
    assert amount is not None, "a Hold is of some amount"
    hold = Hold(data["hold_id"], data["budget_id"], amount, data["attempts"], node.cost, node.attempts_made)
    return replace(node, hold=hold, refused=False, refused_by="", lacks={})


def _settled(node: Node, _data: Data, _at: datetime) -> Node:
    return replace(node, hold=None)


def _attempt_started(node: Node, data: Data, _at: datetime) -> Node:
    told = {**node.attempts, data["attempt_id"]: "started"}
    return replace(node, attempts=told, attempts_made=node.attempts_made + 1, waiting_reason="")


def _attempt_finished(node: Node, data: Data, _at: datetime) -> Node:
    told = {**node.attempts, data["attempt_id"]: data["state"]}
    return replace(node, attempts=told, cost=amounts.added(node.cost, event_data.money(data.get("cost"))))


def _written(node: Node, data: Data, _at: datetime) -> Node:
    return replace(node, made=(*node.made, *event_data.artifacts([data])))


def _completed(node: Node, data: Data, at: datetime) -> Node:
    reused = node.results.get(data["input_hash"]) if data.get("reused") and "input_hash" in data else None
    made = event_data.artifacts(data["artifact_list"]) if "artifact_list" in data else node.made
    result = reused or event_data.result(data, made)
    input_hash = data.get("input_hash", node.input_hash)
    return replace(
        node,
        state=NodeState.SUCCEEDED,
        waiting_reason="",
        refused=False,
        refused_by="",
        lacks={},
        artifacts=result.artifacts,
        results={**node.results, input_hash: result},
        input_hash=input_hash,
        fewer=data.get("fewer", node.fewer),
        failure=None,
        cost=event_data.money(data["cost"]) if data.get("cost") else node.cost,
        finished_at=at,
    )


def _failed(node: Node, data: Data, at: datetime) -> Node:
    return replace(
        node,
        state=NodeState.FAILED,
        waiting_reason="",
        refused=False,
        refused_by="",
        lacks={},
        failure=event_data.failure(data.get("error")),
        cost=event_data.money(data["cost"]) if data.get("cost") else node.cost,
        finished_at=at,
    )


def _cancelled(node: Node, data: Data, at: datetime) -> Node:
    return replace(
        node,
        state=NodeState.CANCELLED,
        waiting_reason="",
        refused=False,
        refused_by="",
        lacks={},
        cost=event_data.money(data["cost"]) if data.get("cost") else node.cost,
        finished_at=at,
    )


def _stale(node: Node, _data: Data, _at: datetime) -> Node:
    """What it gave for the old input is kept in `results`, paid, as is why it failed; it will be looked at again."""
    failures = (*node.failures, node.failure) if node.failure else node.failures
    state = NodeState.STALE
    return replace(node, state=state, waiting_reason="", failure=None, failures=failures, finished_at=None)


def _compensating(node: Node, _data: Data, _at: datetime) -> Node:
    return replace(node, state=NodeState.COMPENSATING, waiting_reason="")


def _compensated(node: Node, data: Data, at: datetime) -> Node:
    """Its artifacts count no longer: the node begins anew, and nothing of what it gave is reused."""
    state = NodeState(data.get("state", "pending"))
    finished = at if state in ENDED_NODES else None
    return replace(node, state=state, artifacts=(), results={}, finished_at=finished)


def _released(node: Node, data: Data, _at: datetime) -> Node:
    return replace(node, released=(*node.released, data["shot_class"]))


def _due(node: Node, data: Data, _at: datetime) -> Node:
    """A gate begins; a check has begun and said what is wrong, and a map stays at work."""
    if node.kind != Kind.GATE:
        return node
    return replace(node, state=NodeState.LEASED, waiting_reason=data["reason"])


def _opened(node: Node, data: Data, _at: datetime) -> Node:
    return replace(node, state=NodeState.WAITING_HUMAN, waiting_reason=data["reason"])


def _decided(node: Node, data: Data, at: datetime) -> Node:
    """A decision binds to the hash of what was decided on: another subject is another question (GATE-2)."""
    if data["decision"] in ("approve", "waive"):
        return replace(
            node,
            state=NodeState.SUCCEEDED,
            waiting_reason="",
            failure=None,
            input_hash=data["subject_hash"],
            artifacts=event_data.artifacts(data["artifacts"]),
            finished_at=at,
        )
    return replace(node, input_hash=data["subject_hash"])


NODE_EVENTS: Mapping[str, NodeStep] = {
    "node_ready": _ready,
    "node_started": _started,
    "node_waiting": _waiting,
    "node_completed": _completed,
    "node_failed": _failed,
    "node_cancelled": _cancelled,
    "node_stale": _stale,
    "budget_held": _held,
    "budget_settled": _settled,
    "attempt_started": _attempt_started,
    "attempt_finished": _attempt_finished,
    "artifact_written": _written,
    "canary_released": _released,
    "compensation_started": _compensating,
    "compensation_finished": _compensated,
    "review_due": _due,
    "gate_opened": _opened,
    "gate_decided": _decided,
}
