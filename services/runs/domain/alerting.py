"""Which committed events operators are told of (OPS-6, SLO-2). Pure.

Laws of this file:
- what makes finished work unusable is told with the event that shows it, never by a later sweep: an approval of rights
  or of a release whose subject has changed, a check that finds a contradiction to what was settled, bytes that are not
  those that were made;
- a node that is slow, tried again, or waits for its turn is no event of these: nobody is told.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.runs.domain.asking import LAST_ADDRESSEE
from services.runs.domain.plan import Rank
from services.runs.domain.run import Draft, Hold, Node, Run
from services.runs.domain.task_view import Settled
from services.runs.domain.trends import Change, Measured

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Alert:
    """What is raised. Of one kind, subject and `sort` there is one until it is acknowledged."""

    kind: str
    severity: str
    subject: str
    message: str
    cause: str
    sort: str = ""
    measure: Measured | None = None


def run_link(run_id: str) -> str:
    """The path of the API under which an operator reads a Run, of whatever tenant."""
    return f"/v1/operator/runs/{run_id}"


def alerts_of(before: Run, drafts: Sequence[Draft]) -> Iterator[Alert]:
    """The alerts of events that were committed to a Run that stood so before them."""
    for draft in drafts:
        if rule := _RULES.get(draft.kind):
            yield from rule(before, draft.data)


def _anomaly(before: Run, data: Data) -> Iterator[Alert]:
    hold = before.nodes[data["node"]].hold
    subject = hold.budget_id if hold is not None else before.budget_id or before.id
    said = f"{data['node']} may be charged twice, {data['who'] or 'nobody'} decided: {data['cause']}"
    yield Alert("cost_anomaly", "high", subject, said, before.id)


def _overdue(before: Run, data: Data) -> Iterator[Alert]:
    if data["from"] == LAST_ADDRESSEE:
        said = f"the review of {data['node']} is overdue with the last one who is asked: {data['cause']}"
        yield Alert("stuck_state", "high", data["review_id"], said, before.id)


def _approval_lost(before: Run, data: Data) -> Iterator[Alert]:
    """Only an approval that stood has a rank here; those of other ranks are simply asked for again."""
    kind = _LOST.get(data.get("rank", ""))
    if kind is not None:
        yield Alert(kind, "critical", _subject(before, data), data["cause"], before.id)


_LOST = {Rank.RIGHTS.value: "rights_expired", Rank.RELEASE.value: "release_hash_changed"}


def _examined(before: Run, data: Data) -> Iterator[Alert]:
    """What a node made was looked at when it was made: a check that finds it unsound later has found other bytes."""
    for name, kind, said in _GRAVE:
        if nodes := data.get(name):
            words = f"{', '.join(nodes)} {said}: {data['reason']}"
            yield Alert(kind, "critical", _subject(before, data), words, before.id)


_GRAVE = (
    ("contradicts", "facts_in_conflict", "contradicts what was settled"),
    ("unsound", "release_hash_changed", "is not what was made"),
)


def _subject(run: Run, data: Data) -> str:
    return f"{run.id}/{data['node']}"


_RULES: Mapping[str, Callable[[Run, Data], Iterator[Alert]]] = {
    "cost_anomaly": _anomaly,
    "review_escalated": _overdue,
    "node_stale": _approval_lost,
    "node_waiting": _examined,
}


def beyond(run: Run, node: Node, hold: Hold, settled: Settled) -> Iterator[Alert]:
    """A node cost more than the worst that had been held for it (COST-12)."""
    more = settled.beyond
    if more is not None and more.amount > 0:
        said = f"{node.id} of run {run.id} cost {more} more than the {hold.amount} that were held for it"
        measure = Measured("cost", more.currency, float(hold.amount.amount), (float((hold.amount + more).amount),))
        yield Alert("cost_anomaly", "high", hold.budget_id or run.budget_id, said, run.id, measure=measure)


def soft_limit(budget_id: str, cause: str) -> Alert:
    """A budget has little left."""
    return Alert("budget_soft_limit", "medium", budget_id, f"{budget_id} has reached its soft limit", cause)


def hard_limit(budget_id: str, message: str, cause: str) -> Alert:
    """A budget refuses."""
    return Alert("budget_hard_limit", "high", budget_id, message, cause)


def still(run_id: str, why: str) -> Alert:
    """A Run should have moved and has not (RUN-6)."""
    return Alert("stuck_state", "high", run_id, f"run {run_id}: {why}", why)


def worse(change: Change) -> Alert:
    """A figure of a model has gone bad (SLO-1): told apart from what dispatch tells of the same model."""
    kind, severity, said = _WORSE[change.measure.figure]
    figures = {"now": change.measure.value, "then": change.measure.baseline, "unit": change.measure.unit}
    words = said.format(model=change.model, **figures)
    return Alert(kind, severity, change.model, words, change.measure.figure, change.measure.figure, change.measure)


_WORSE = {
    "first_pass_yield": (
        "exact_supply_unavailable",
        "critical",
        "of {model} {now:.0%} came out right at the first attempt lately, where it was {then:.0%}",
    ),
    "queue_time": (
        "stuck_state",
        "medium",
        "what {model} is to make waits {now:.0f} s for its attempt lately, where it was {then:.0f} s",
    ),
    "cost_per_usable_second": (
        "cost_drift",
        "high",
        "a second of {model} costs {now:.4g} {unit} lately, where it was {then:.4g} {unit}",
    ),
}


def not_rebuilt(wrong: int, checked: int) -> Alert:
    """Runs are not what their events tell (EVENT-3)."""
    said = f"{wrong} of {checked} ended runs are not what their events tell"
    measure = Measured("rebuild_success", "ratio", 1.0, (1 - wrong / checked,))
    return Alert("invariant_violated", "critical", "runs", said, "EVENT-3", measure=measure)
