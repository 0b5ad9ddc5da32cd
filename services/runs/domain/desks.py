"""What stands on people's desks: reviews and dead letters as records, worked out from the events that change them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from libs.kernel.canonical import digest
from libs.kernel.money import Money
from services.runs.domain import event_data
from services.runs.domain.asking import ID_LENGTH
from services.runs.domain.deciding import change_said
from services.runs.domain.memos import Memo, memo_changes
from services.runs.domain.plan import Rank
from services.runs.domain.run import Artifact, Draft, Failure, Node, NodeState, Question, Run

RANKS = tuple(Rank)
"""The order of the queue (HUMAN-3)."""


class ReviewState(StrEnum):
    """Where a review stands."""

    OPEN = "open"
    CLAIMED = "claimed"
    DECIDED = "decided"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Review:
    """A question and what became of it. `decision` is "" until it is decided."""

    run_id: str
    tenant: str
    state: ReviewState
    question: Question
    finished_at: datetime | None = None
    decision: str = ""
    decider: str = ""
    comment: str = ""
    limit: Mapping[str, Any] | None = None
    """What a decided `raise_budget` named."""
    change: str = ""
    """Digest of what a decision had made again, and how; "" of one that was decided before this was kept."""

    @property
    def id(self) -> str:
        """The question's."""
        return self.question.id


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A node that ended without a result, as it was then (DLQ-1)."""

    id: str
    run_id: str
    node: str
    tenant: str
    failure: Failure
    created_at: datetime
    task_ids: tuple[str, ...]
    desk: str
    cost: Money | None = None
    input: Mapping[str, Any] = field(default_factory=dict)
    artifacts: tuple[Artifact, ...] = ()
    redriven_at: datetime | None = None
    redrive_reason: str = ""


@dataclass(frozen=True, slots=True)
class DeskChanges:
    """Records to be written with the events that cause them. `redriven`: nodes that begin again, so that their letters
    are closed, and why.

    `memos`: results that other Runs may take; `forgotten`: input hashes whose results nobody may take any more.
    """

    reviews: tuple[Review, ...] = ()
    letters: tuple[DeadLetter, ...] = ()
    redriven: tuple[str, ...] = ()
    reason: str = ""
    memos: tuple[Memo, ...] = ()
    forgotten: tuple[str, ...] = ()


def desk_changes(before: Run, after: Run, drafts: Sequence[Draft], now: datetime) -> DeskChanges:
    """What these events change on people's desks."""
    reviews: dict[str, Review] = {}
    letters: list[DeadLetter] = []
    redriven: list[str] = []
    reason = ""
    for draft in drafts:
        data = draft.data
        if draft.kind in ("gate_opened", "review_opened"):
            asked = event_data.question(data["review"])
            reviews[asked.id] = Review(after.id, after.tenant, ReviewState.OPEN, asked)
        elif draft.kind in _REVIEW_EVENTS:
            known = reviews.get(data["review_id"]) or _before(before, after, data["review_id"])
            if known is not None:
                reviews[known.id] = _after(known, after, draft, now)
        elif draft.kind == "node_failed" and "dead_letter" in data:
            letters.append(_letter(after, after.nodes[data["node"]], draft, now))
        elif draft.kind == "run_redriven":
            redriven += [*data["nodes"], *data.get("resumed", ())]
            reason = f"{data['who']}: {data['reason']}" if data["who"] else data["reason"]
        elif draft.kind == "node_stale" and before.nodes[data["node"]].state is NodeState.FAILED:
            redriven.append(data["node"])
            reason = data["cause"]
    memos, forgotten = memo_changes(before, after, drafts)
    return DeskChanges(tuple(reviews.values()), tuple(letters), tuple(redriven), reason, memos, forgotten)


_REVIEW_EVENTS = frozenset({"gate_decided", "review_decided", "review_withdrawn", "review_claimed", "review_escalated"})


def _before(before: Run, after: Run, review_id: str) -> Review | None:
    asked = before.questions.get(review_id)
    if asked is None:
        return None
    state = ReviewState.CLAIMED if asked.assignee else ReviewState.OPEN
    return Review(after.id, after.tenant, state, asked)


def _after(known: Review, after: Run, draft: Draft, now: datetime) -> Review:
    data = draft.data
    if draft.kind == "review_withdrawn":
        return replace(known, state=ReviewState.WITHDRAWN, finished_at=now, comment=data["cause"])
    if draft.kind in ("review_claimed", "review_escalated"):
        return replace(known, state=ReviewState.CLAIMED, question=after.questions.get(known.id, known.question))
    said = {"decision": data["decision"], "decider": data["who"], "comment": data["comment"]}
    known = replace(known, limit=data.get("budget"), change=change_said(data))
    return replace(known, state=ReviewState.DECIDED, finished_at=now, **said)


def _letter(run: Run, node: Node, draft: Draft, now: datetime) -> DeadLetter:
    error = event_data.failure(draft.data["error"])
    assert error is not None, "a node fails for a reason"
    return DeadLetter(
        id=digest([run.id, node.id, node.tries, len(node.failures)])[:ID_LENGTH],
        run_id=run.id,
        node=node.id,
        tenant=run.tenant,
        failure=error,
        created_at=now,
        task_ids=node.task_ids,
        desk=draft.data["dead_letter"]["desk"],
        cost=node.cost,
        input=node.input,
        artifacts=node.made or node.artifacts,
    )
