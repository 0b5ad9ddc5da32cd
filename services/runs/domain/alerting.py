"""Which committed events operators are told of (OPS-6). Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.runs.domain.asking import LAST_ADDRESSEE
from services.runs.domain.run import Draft, Hold, Run
from services.runs.domain.task_view import Settled


@dataclass(frozen=True, slots=True)
class Alert:
    """What is raised. Of one kind and subject there is one until it is acknowledged."""

    kind: str
    severity: str
    subject: str
    message: str
    cause: str


def alerts_of(before: Run, drafts: Sequence[Draft]) -> Iterator[Alert]:
    """The alerts of events that were committed to a Run that stood so before them."""
    for draft in drafts:
        data = draft.data
        if draft.kind == "cost_anomaly":
            hold = before.nodes[data["node"]].hold
            subject = hold.budget_id if hold is not None else before.budget_id or before.id
            said = f"{data['node']} may be charged twice, {data['who']} decided: {data['cause']}"
            yield Alert("cost_anomaly", "high", subject, said, before.id)
        elif draft.kind == "review_escalated" and data["from"] == LAST_ADDRESSEE:
            said = f"the review of {data['node']} is overdue with the last one who is asked: {data['cause']}"
            yield Alert("stuck_state", "high", data["review_id"], said, before.id)


def beyond(run: Run, hold: Hold, settled: Settled) -> Iterator[Alert]:
    """Something cost more than the worst that had been held for it (COST-12)."""
    if settled.beyond is not None and settled.beyond.amount > 0:
        said = f"hold {hold.id} was settled {settled.beyond} beyond the {hold.amount} that had been held"
        yield Alert("cost_anomaly", "high", hold.budget_id or run.budget_id, said, run.id)
