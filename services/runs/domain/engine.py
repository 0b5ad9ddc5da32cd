"""What happens next in a Run. Pure: `next_commands` answers what is to be recorded, and what is to be done outside.

    history -> Run (the fold) -> next_commands(plan, run, now) -> Record(events) or Act(...), which end as more events

Laws of this file:
- a Run at rest never changes by itself; exactly one terminal event ends it (EVENT-1);
- an intent is on record before anything is done for it; what is done twice is done once, because every act carries an
  id that was recorded before (task, hold);
- each state that is not an end has exactly one way on (`moves.RECOVERY`), whoever looks at it, and however often.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from services.runs.domain import asking, ending, hearing, maps
from services.runs.domain.history import applied
from services.runs.domain.plan import Kind, Plan
from services.runs.domain.readiness import Look, hopeless, pressure
from services.runs.domain.run import (
    AT_WORK,
    ENDED_NODES,
    TERMINAL_STATES,
    WAITING_TO_START,
    Draft,
    Node,
    NodeState,
    Run,
    RunState,
)
from services.runs.domain.staleness import stale
from services.runs.domain.starting import begun
from services.runs.domain.stranding import stranded
from services.runs.domain.task_view import PAUSED

LONGEST_CHAIN = 10_000
ASKING_AT_ONCE = 8
"""Nodes whose Hold is asked for at the same time."""


class Deed(StrEnum):
    """What may be done outside."""

    HOLD = "hold"
    SUBMIT = "submit"
    FOLLOW = "follow"
    CANCEL = "cancel"
    WITHDRAW = "withdraw"
    SETTLE = "settle"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    EXAMINE = "examine"
    RESERVE = "reserve"
    BOOK = "book"
    RAISE = "raise"


@dataclass(frozen=True, slots=True)
class Record:
    """Events to be committed."""

    drafts: tuple[Draft, ...]


@dataclass(frozen=True, slots=True)
class Act:
    """Something to be done for a node, or for a question about it; doing it again is harmless."""

    deed: Deed
    node: str
    review: str = ""


Command = Record | Act


def next_commands(plan: Plan, run: Run, now: datetime) -> tuple[Command, ...]:
    """What is to be recorded now, alone; or, when there is nothing to record, what is to be done."""
    drafts = decided(plan, run, now)
    return (Record(drafts),) if drafts else tuple(acts(plan, run, now))


def decided(plan: Plan, run: Run, now: datetime) -> tuple[Draft, ...]:
    """Everything that follows from the Run as it stands, one thing after the other, as one commit."""
    gathered: list[Draft] = []
    while len(gathered) < LONGEST_CHAIN:
        drafts = _next(plan, run, now)
        if not drafts:
            return tuple(gathered)
        gathered.extend(drafts)
        run = applied(run, drafts, now)
    raise RuntimeError(f"run {run.id} does not come to rest by itself")


def _next(plan: Plan, run: Run, now: datetime) -> tuple[Draft, ...]:
    if run.state in TERMINAL_STATES:
        return ()
    if why := ending.stopping(plan, run, now):
        return ending.wound_up(plan, run, why)
    if drafts := (*asking.overdue(run, now), *asking.unneeded(run), *asking.overtaken(plan, run)):
        return drafts
    if plan.single or run.state is RunState.PAUSED:
        return _single(plan, run, now)
    if run.state is RunState.PENDING:
        return (Draft("run_started"),)
    for rule in _RULES:
        if drafts := rule(plan, run, now):
            return drafts
    return ending.finished(run) if hopeless(run) else ()


def _single(plan: Plan, run: Run, now: datetime) -> tuple[Draft, ...]:
    """One Task and no retry; its intent was recorded with its creation, unless it must find money first."""
    if not plan.single or run.state is RunState.PAUSED:
        return ()
    node = run.node
    if node.state in ENDED_NODES and node.hold is None:
        return hearing.closed(run)
    if node.state is not NodeState.PENDING or straight_on(run, node):
        return ()
    started = () if run.state is RunState.RUNNING else (Draft("run_started"),)
    return (*started, *begun(plan, run, node, now))


def straight_on(run: Run, node: Node) -> bool:
    """Whether the id of the Task was recorded at creation, so that it may be handed over without another commit."""
    return run.production is None and not run.budget_id and bool(node.task_id) and not node.task_ids


def _stale(plan: Plan, run: Run, now: datetime) -> tuple[Draft, ...]:
    """What begins, begins on what has finished: only a redrive can change what was begun on."""
    return stale(plan, run) if run.redrives else ()


def _stranded(plan: Plan, run: Run, now: datetime) -> tuple[Draft, ...]:
    return stranded(plan, run)


def _maps(plan: Plan, run: Run, now: datetime) -> tuple[Draft, ...]:
    at_work = [node for node in run.nodes.values() if node.kind == Kind.MAP and node.state is NodeState.RUNNING]
    return tuple(draft for node in at_work for draft in maps.advanced(plan, run, node, now))


def _pressure(plan: Plan, run: Run, now: datetime) -> tuple[Draft, ...]:
    return pressure(plan, run, now)


def _starts(plan: Plan, run: Run, now: datetime) -> tuple[Draft, ...]:
    """One node at a time: what begins may leave no room for the next.

    Few ask for money at once: what the first ones are answered (a soft limit, a refusal) counts for those after them.
    """
    asking_now = sum(map(asking.asks_for_money, run.nodes.values()))
    soft = plan.budget is not None and plan.budget.soft is not None
    if asking_now >= (1 if soft else ASKING_AT_ONCE):
        return ()
    look = Look(plan, run, now)
    for node in run.nodes.values():
        if node.state in WAITING_TO_START and not look.waits_for(node):
            return begun(plan, run, node, now)
    return ()


Rule = Callable[[Plan, Run, datetime], tuple[Draft, ...]]
_RULES: Sequence[Rule] = (_stale, _stranded, _maps, _pressure, _starts)


def acts(plan: Plan, run: Run, now: datetime) -> Iterator[Act]:
    """What is to be done outside for the Run as it stands, in the order of its nodes."""
    if run.state in TERMINAL_STATES:
        return
    stopping = bool(ending.stopping(plan, run, now))
    yield from (Act(Deed.RAISE, asked.node) for asked in run.raising)
    yield from _reviewing(run, stopping)
    for node in run.nodes.values():
        if node.items:
            continue
        if node.state not in AT_WORK and node.hold is not None and not _in_doubt(run, node):
            yield Act(Deed.SETTLE, node.id)
        elif node.kind == Kind.CHECK and node.state is NodeState.LEASED and node.id not in run.awaited:
            yield Act(Deed.EXAMINE, node.id)
        elif node.kind == Kind.GENERATE:
            yield from _generating(plan, run, node, stopping)


def _reviewing(run: Run, stopping: bool) -> Iterator[Act]:
    """Minutes of reviewers: what is over is booked, then what is due is asked for."""
    for review_id, kept in run.reserved.items():
        if kept.used is not None:
            yield Act(Deed.BOOK, kept.node, review_id)
    if stopping or run.state is RunState.PAUSED or run.raising:
        return
    for review_id, due in run.due.items():
        if not due.refused_by:
            yield Act(Deed.RESERVE, due.question.node, review_id)


def _generating(plan: Plan, run: Run, node: Node, stopping: bool) -> Iterator[Act]:
    paused = run.state is RunState.PAUSED
    if node.state is NodeState.RUNNING:
        yield Act(Deed.FOLLOW, node.id)
        if stopping:
            yield Act(Deed.CANCEL, node.id)
        elif paused != node.waiting_reason.startswith(PAUSED):
            yield Act(Deed.PAUSE if paused else Deed.UNPAUSE, node.id)
    elif node.state is NodeState.LEASED or (node.state is NodeState.PENDING and plan.single and straight_on(run, node)):
        if stopping:
            yield Act(Deed.WITHDRAW, node.id)
        elif paused:
            if node.state is NodeState.LEASED:  # its hand-over may have been on the way
                yield Act(Deed.PAUSE, node.id)
        elif needs_hold(plan, node):
            if not run.raising and not node.refused:  # it would be refused by a limit that is no longer the one, or is
                yield Act(Deed.HOLD, node.id)
        else:
            yield Act(Deed.SUBMIT, node.id)


def needs_hold(plan: Plan, node: Node) -> bool:
    """Whether money is to be found before the Task is handed over (COST-9)."""
    return node.hold is None and plan.budget is not None


def _in_doubt(run: Run, node: Node) -> bool:
    """A charge that may have doubled keeps its Hold until a person has decided (COST-12)."""
    return asking.open_for(run, "charge_doubt", node.id) is not None
