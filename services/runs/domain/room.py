"""Who may ask a level of a budget again that refused before: those for whose request it has room by now, whoever made
it, by a raise, a settlement or a refund (COST-9, COST-10, HUMAN-2). Pure.

Laws of this file:
- nobody is let ask without room for what was refused, so that asking never goes round in circles;
- who waits for what is held to come free, and of whom no person knows, asks too where that would make no room any
  more, so that a person is asked in the end;
- room that one is let ask for is not offered to the next in the same look: few are refused a second time;
- what nobody has counted (a rate that is missing) waits for a person alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from services.runs.domain.run import Draft, Run, RunState
from services.runs.domain.task_view import Level

Drafts = tuple[Draft, ...]
Levels = Mapping[str, Level]
ROOM = "room"
"""The root cause of who waits for what is held to come free, and for nobody's answer: `room:BUDGET`."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Something that a level refused and that waits there still: a node, or a review for which there are no minutes."""

    level: str
    what: str
    of_review: bool
    lacks: Mapping[str, str]
    """What was asked, by dimension."""
    quiet: bool = False
    """Nobody is asked for more: it waits for what is held to come free."""


Waits = tuple[Wait, ...]


def waits(run: Run) -> Waits:
    """What levels refused, in the order of the Run; nothing of a Run that does not move."""
    if run.state is not RunState.RUNNING or run.cancel_requested or run.raising:
        return ()
    nodes = [
        Wait(_level(node.refused_by), node.id, False, node.lacks, node.refused_by.startswith(f"{ROOM}:"))
        for node in run.nodes.values()
        if node.refused and node.lacks
    ]
    reviews = [Wait(_level(due.refused_by), name, True, due.lacks) for name, due in run.due.items() if due.lacks]
    return (*nodes, *reviews)


def any_fits(waiting: Waits, levels: Levels, now: datetime) -> bool:
    """Whether any of them has room at its level as it stands."""
    return any(wait.level in levels and _may_ask(levels[wait.level], wait, now) for wait in waiting)


def freed(run: Run, levels: Levels, now: datetime) -> tuple[Drafts, Levels]:
    """(For each level that has room those who may ask it again, the levels with what these will take)."""
    nodes: dict[str, list[str]] = {}
    reviews: dict[str, list[str]] = {}
    left = dict(levels)
    for wait in waits(run):
        level = left.get(wait.level)
        if level is None or not _may_ask(level, wait, now):
            continue
        if has_room(level, wait.lacks, now):
            left[wait.level] = _with(level, wait.lacks)
        (reviews if wait.of_review else nodes).setdefault(wait.level, []).append(wait.what)
    drafts = (
        Draft("budget_freed", {"budget_id": name, "nodes": nodes.get(name, []), "reviews": reviews.get(name, [])})
        for name in dict.fromkeys((*nodes, *reviews))
    )
    return tuple(drafts), left


def _may_ask(level: Level, wait: Wait, now: datetime) -> bool:
    return has_room(level, wait.lacks, now) or (wait.quiet and not has_room(_settled(level), wait.lacks, now))


def _settled(level: Level) -> Level:
    """As if nothing that is held there were charged."""
    return replace(level, used=level.spent)


def has_room(level: Level, lacks: Mapping[str, str], now: datetime) -> bool:
    """Whether the level, as it stands, would take that."""
    if level.deadline is not None and now >= level.deadline:
        return False
    limits = ((level.hard.get(name), level.used.get(name, Decimal(0)) + Decimal(more)) for name, more in lacks.items())
    return all(not limit or wanted <= limit for limit, wanted in limits)


def _with(level: Level, lacks: Mapping[str, str]) -> Level:
    more = {name: level.used.get(name, Decimal(0)) + Decimal(amount) for name, amount in lacks.items()}
    return replace(level, used={**level.used, **more})


def _level(root_cause: str) -> str:
    return root_cause.partition(":")[2]
