"""When a Run that is at rest goes on by the passing of time alone. Pure.

The engine asks for the time in four places: for the Run's deadline, for those of its questions, for the end of a pause
between tries, and for how long the oldest question has been open. A fifth belongs here too.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from services.runs.domain.ending import deadline_of
from services.runs.domain.plan import Plan
from services.runs.domain.run import WAITING_TO_START, Run

JUST_AFTER = timedelta(microseconds=1)


def wakes_at(plan: Plan, run: Run, now: datetime) -> datetime | None:
    """The first moment after `now` at which something may follow that did not; None = only what happens wakes it."""
    return min((moment for moment in _moments(plan, run) if moment > now), default=None)


def _moments(plan: Plan, run: Run) -> Iterator[datetime]:
    deadline = deadline_of(plan, run)
    if deadline is not None:
        yield deadline
    for asked in run.questions.values():
        yield asked.deadline
        yield asked.opened_at + plan.reviews.oldest + JUST_AFTER  # beyond it people are too slow
    for node in run.nodes.values():
        if node.retry_at is not None and node.state in WAITING_TO_START:
            yield node.retry_at
