"""What a Task has spent is the sum of its Attempts, a Run tells the same as it ended, and only what may cost money
costs it (COST-7..12)."""

from decimal import Decimal

from services.routing.domain.task import AttemptState
from services.runs.domain.run import RunState
from tests.simulation.story import Story, tasks_of

NEEDS = ("attempts that cost money", "switches of supply")
FREE = frozenset({AttemptState.NOT_ACCEPTED, AttemptState.RESERVED})


def check(story: Story) -> list[str]:
    """Breaches."""
    breaches = []
    tasks = {task.id: task for task in story.tasks}
    for task in story.tasks:
        total = sum((attempt.cost.amount for attempt in task.attempts if attempt.cost), Decimal(0))
        if total != task.spent.amount:
            breaches.append(f"task {task.id} has spent {task.spent.amount}, its attempts {total}")
        for attempt in task.attempts:
            if attempt.state is AttemptState.SUCCEEDED and attempt.cost != attempt.quote:
                breaches.append(f"attempt {attempt.id} delivered for {attempt.cost}, quoted {attempt.quote}")
            if (attempt.state in FREE or not attempt.counted) and attempt.cost and attempt.cost.amount:
                breaches.append(f"attempt {attempt.id} is {attempt.state} and cost {attempt.cost}")
    for run in story.runs:
        known = [tasks[name] for name in tasks_of(run) if name in tasks]
        told = run.usage.cost.amount if run.usage.cost else Decimal(0)
        spent = sum((task.spent.amount for task in known), Decimal(0))
        corrected = any(attempt.late or attempt.resolution for task in known for attempt in task.attempts)
        if known and not corrected and run.state is not RunState.PENDING and told != spent:
            breaches.append(f"run {run.id} tells a cost of {told}, its tasks have spent {spent}")
    return breaches
