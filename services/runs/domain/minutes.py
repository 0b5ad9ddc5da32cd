"""Minutes of reviewers: held before a person is asked, booked when they have decided, free again where nobody needs to
decide any more (COST-10). Pure.

Laws of this file:
- where a production has a budget, nobody is asked to look at anything before the minutes for it are held; a question
  about limits, prices or charges takes none, so that a request for more never waits for what it requests;
- a person's time runs from the claim; where nobody claimed, from the opening, and is then at most what was held: a
  review that waits over a night costs nobody's night;
- a Hold's id follows from its question's, which is on record before minutes are asked for; whatever becomes of the
  question, that Hold is settled or closed.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil

from services.runs.domain import asking
from services.runs.domain.plan import Plan
from services.runs.domain.run import Draft, NodeState, Question, Reserved, Run
from services.runs.domain.task_view import Held, HeldMinutes, Refused

Drafts = tuple[Draft, ...]
ASKED_FOR = "budget: minutes of a reviewer are being held"
WAITS = NodeState.WAITING_HUMAN.value


def hold_id(review_id: str) -> str:
    """The Hold of a question's minutes."""
    return f"review:{review_id}"


def asked_for(plan: Plan, asked: Question) -> Drafts:
    """The question is asked, or will be once there are minutes for it."""
    if plan.budget is None:
        return (asking.opened(asked),)
    told = {"node": asked.node, "review": asking.as_json(asked), "minutes": plan.reviews.minutes, "reason": ASKED_FOR}
    return (Draft("review_due", told),)


def held(run: Run, review_id: str, answer: HeldMinutes, now: datetime) -> Drafts:
    """There are minutes: the person is asked, and their deadline runs from now."""
    due = run.due.get(review_id)
    if due is None or due.refused_by:
        return ()
    asked = due.question
    told = {
        "node": asked.node,
        "review_id": review_id,
        "hold_id": hold_id(review_id),
        "budget_id": answer.budget_id,
        "minutes": answer.minutes,
    }
    begun = replace(asked, opened_at=now, deadline=now + timedelta(seconds=asked.span_s))
    return (
        Draft("review_minutes_held", told),
        *_waits_for_a_person(run, asked),
        asking.opened(begun),
        *slowed(run, asked.node, answer),
    )


def slowed(run: Run, node_id: str, answer: Held | HeldMinutes) -> Drafts:
    """The levels that are past their soft limit, each once: when the ledger tells of one, or when the Run meets one
    that others have brought there."""
    met = (name for name in answer.past_soft if name not in run.soft_at)
    return tuple(
        Draft("budget_soft_limit", {"budget_id": name, "node": node_id}) for name in dict.fromkeys((*answer.soft, *met))
    )


def _waits_for_a_person(run: Run, asked: Question) -> Iterator[Draft]:
    """What the node says from now on. A gate's opening says so itself, and a map is at work."""
    if asked.kind == "check":
        yield Draft("node_waiting", {"node": asked.node, "state": WAITS, "reason": f"check: {asked.cause}"})
    elif asked.kind != "gate" and run.nodes[asked.node].waiting_reason.startswith("budget: "):
        yield Draft("node_waiting", {"node": asked.node, "reason": ""})


def refused(plan: Plan, run: Run, review_id: str, answer: Refused, now: datetime) -> Drafts:
    """No level may lack: what is to be looked at stops, and somebody is asked for more."""
    due = run.due.get(review_id)
    if due is None or due.refused_by:
        return ()
    asked = due.question
    root = asking.limit_root(plan, asked.node, answer.budget_id, minutes=True)
    about = {"node": asked.node, "review_id": review_id}
    waits = {"node": asked.node, "reason": f"budget: {answer.message}"}
    if asked.kind in ("gate", "check"):
        waits["state"] = WAITS
    drafts: Drafts = (
        Draft("node_waiting", waits),
        Draft("review_refused", {**about, "root_cause": root, "lacks": answer.lacks}),
    )
    if asking.open_for(run, "budget", "", root) is None:
        nodes = [run.nodes[name] for name in (asked.node, *asked.subjects)]
        drafts = (*drafts, asking.opened(asking.for_more(plan, run, nodes, answer, now, root)))
    return drafts


def settled(run: Run, review_id: str, soft: tuple[str, ...]) -> Drafts:
    """What a question took is booked, the rest is free again."""
    kept = run.reserved.get(review_id)
    if kept is None or kept.used is None:
        return ()
    told = {"node": kept.node, "review_id": review_id, "hold_id": kept.hold_id, "minutes": kept.used}
    return (
        Draft("review_minutes_settled", told),
        *(Draft("budget_soft_limit", {"budget_id": name, "node": kept.node}) for name in soft),
    )


def minutes_used(asked: Question, expected: int, at: datetime) -> int:
    """Whole minutes that a decision at that time took, at least one."""
    since = asked.claimed_at or asked.opened_at
    used = max(ceil((at - since).total_seconds() / 60), 1)
    return used if asked.claimed_at is not None else min(used, expected)


def over(run: Run, review_id: str, at: datetime, *, decided: bool) -> Run:
    """The Run without that question; what was held for it, or may yet be, is to be booked or to come free."""
    asked, due = run.questions.get(review_id), run.due.get(review_id)
    kept = run.reserved.get(review_id)
    if due is not None:
        kept = Reserved(hold_id(review_id), due.question.node, due.minutes, 0)
    elif kept is not None and asked is not None:
        kept = replace(kept, used=minutes_used(asked, kept.minutes, at) if decided else 0)
    return replace(
        run,
        questions={name: each for name, each in run.questions.items() if name != review_id},
        due={name: each for name, each in run.due.items() if name != review_id},
        reserved=run.reserved if kept is None else {**run.reserved, review_id: kept},
    )
