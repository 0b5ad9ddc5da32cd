"""Between rows and values, total in both directions."""

from collections.abc import Mapping, Sequence
from typing import Any

from libs.kernel.canonical import plain
from libs.kernel.money import Money
from services.routing.domain.fairness import CLASS_WEIGHTS, class_of
from services.routing.domain.measure import Measure
from services.routing.domain.request import Request
from services.routing.domain.rounds import RoundOutcome, SelectionRound
from services.routing.domain.shares import due_at
from services.routing.domain.task import Attempt, AttemptState, Doubt, Failure, LateWord, Result, Task, TaskState
from services.routing.domain.thaw import thaw
from services.routing.ports.alerts import Alert

Row = Mapping[Any, Any]
CLASSES = tuple(CLASS_WEIGHTS)
"""A class of urgency is kept as its place in this list."""


def task_row(task: Task) -> dict[str, Any]:
    """Every column of a new Task, claims apart."""
    return {
        "id": task.id,
        "tenant": task.request.tenant,
        "model": task.request.model,
        "kind": task.kind,
        "urgency": CLASSES.index(class_of(task.request)),
        "turn_at": due_at(task),
        "request": plain(task.request),
        "run_id": task.run_id,
        "node_id": task.node_id,
        "created_at": task.created_at,
        "deadline": task.request.deadline,
        "revision": task.revision,
        "epoch": task.epoch,
        "worker": "",
        "claimed_until": None,
        "cancel_requested": task.cancel_requested,
        "cancel_reason": task.cancel_reason,
        "paused": task.paused,
        "doubted_since": task.doubt.since if task.doubt else None,
        "doubted_until": task.doubt.until if task.doubt else None,
        "traceparent": task.traceparent,
        **task_changes(task),
    }


def task_changes(task: Task) -> dict[str, Any]:
    """The columns that a claim's holder writes."""
    return {
        "state": task.state.value,
        "currency": task.spent.currency,
        "spent": task.spent.amount,
        "next_action_at": task.next_action_at,
        "waiting_reason": storable(task.waiting_reason),
        "rounds": task.rounds,
        "round_key": task.round_key,
        "result": None if task.result is None else storable(plain(task.result)),
        "failure": None if task.failure is None else storable(plain(task.failure)),
        "finished_at": task.finished_at,
    }


def task_of(row: Row, attempts: Sequence[Attempt]) -> Task:
    """The Task of a row and its Attempts, oldest first."""
    return Task(
        id=row["id"],
        request=thaw(Request, row["request"]),
        kind=row["kind"],
        state=TaskState(row["state"]),
        created_at=row["created_at"],
        spent=Money(row["currency"], row["spent"]),
        run_id=row["run_id"],
        node_id=row["node_id"],
        revision=row["revision"],
        epoch=row["epoch"],
        waiting_reason=row["waiting_reason"],
        next_action_at=row["next_action_at"],
        attempts=tuple(attempts),
        rounds=row["rounds"],
        result=None if row["result"] is None else thaw(Result, row["result"]),
        failure=_failure(row["failure"]),
        cancel_requested=row["cancel_requested"],
        finished_at=row["finished_at"],
        cancel_reason=row["cancel_reason"],
        paused=row["paused"],
        doubt=_doubt(row),
        round_key=row["round_key"],
        traceparent=row["traceparent"],
    )


def storable(value: Any) -> Any:
    """The value without U+0000, which PostgreSQL keeps in no text: a provider's words must not cost us its result."""
    if isinstance(value, str):
        return value.replace("\x00", "")
    if isinstance(value, Mapping):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [storable(item) for item in value]
    return value


_SAME = (
    "id", "task_id", "number", "supply", "channel", "client_token", "provider_task_id", "epoch", "round", "lease_id",
    "channel_epoch", "supply_epoch", "catalog_revision", "counted", "report_pending", "poll_failures",
    "polls_failing_since", "reconcile_count", "uncertain_deadline", "cancel_tried", "cancel_refused", "resolution",
    "reserved_at", "submitted_at", "accepted_at", "finished_at", "late_look_at", "late_looks",
    "price_rule", "price_version", "quote_kind", "doubted", "silent_since",
)  # fmt: skip
"""Columns that are fields of the same name and value."""
_DEGRADATION = ("rule", "requested_profile", "actual_profile", "dropped_inputs")


def attempt_row(attempt: Attempt) -> dict[str, Any]:
    """Every column."""
    return {
        **{name: getattr(attempt, name) for name in _SAME},
        "state": attempt.state.value,
        "currency": attempt.quote.currency,
        "quote": attempt.quote.amount,
        "cost": None if attempt.cost is None else attempt.cost.amount,
        "input": plain(attempt.input),
        "late": None if attempt.late is None else storable(plain(attempt.late)),
        "degradation": {name: plain(getattr(attempt, name)) for name in _DEGRADATION},
        "failure": None if attempt.failure is None else storable(plain(attempt.failure)),
    }


def attempt_of(row: Row) -> Attempt:
    """The Attempt of a row."""
    shape = dict(row["degradation"] or {})
    shape["dropped_inputs"] = tuple(shape.get("dropped_inputs", ()))
    return Attempt(
        **{name: row[name] for name in _SAME},
        **shape,
        state=AttemptState(row["state"]),
        quote=Money(row["currency"], row["quote"]),
        cost=None if row["cost"] is None else Money(row["currency"], row["cost"]),
        input=row["input"],
        late=None if row["late"] is None else thaw(LateWord, row["late"]),
        failure=_failure(row["failure"]),
    )


def round_row(item: SelectionRound) -> dict[str, Any]:
    """Every column."""
    return {
        "task_id": item.task_id,
        "round": item.round,
        "decided_at": item.decided_at,
        "outcome": item.outcome.value,
        "note": item.note,
        "record": item.record,
    }


def round_of(row: Row) -> SelectionRound:
    """The round of a row."""
    outcome = RoundOutcome(row["outcome"])
    return SelectionRound(row["task_id"], row["round"], row["decided_at"], outcome, row["record"], row["note"])


ALERT_COLUMNS = (
    "id", "key", "kind", "severity", "subject", "message", "cause", "link", "created_at", "acknowledged_at", "count",
)  # fmt: skip


def alert_row(alert: Alert) -> dict[str, Any]:
    """Every column but `consequence`, which the database works out."""
    return {**{name: getattr(alert, name) for name in ALERT_COLUMNS}, "measure": measure_json(alert.measure)}


def alert_of(row: Row) -> Alert:
    """The alert of a row."""
    return Alert(**{name: row[name] for name in ALERT_COLUMNS}, measure=measure_of(row["measure"]))


def measure_json(measure: Measure | None) -> Any:
    """What an alert measured, as it is kept."""
    return None if measure is None else plain(measure)


def measure_of(value: Any) -> Measure | None:
    """The inverse."""
    return None if value is None else thaw(Measure, value)


def _doubt(row: Row) -> Doubt | None:
    return None if row["doubted_since"] is None else Doubt(row["doubted_since"], row["doubted_until"])


def _failure(value: Mapping[str, Any] | None) -> Failure | None:
    return None if value is None else thaw(Failure, value)
