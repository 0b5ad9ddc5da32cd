"""The ledger of budgets is balanced: its own check finds nothing, no Hold is left when everything rests, no level is
beyond its limit while prices stand, and what a production has spent is what its Tasks have cost (COST-9, COST-11). Only
a Task that may have been charged keeps its Hold (COST-12)."""

from decimal import Decimal

from services.cost_quote.domain.budgets import COUNTED, NOTHING
from services.routing.domain.spending import settled_cost
from services.routing.domain.task import Task
from services.runs.domain.run import Run
from tests.simulation.story import Story, tasks_of

NEEDS = ("holds settled", "budgets that refused", "budgets raised")
NANOS = Decimal(1_000_000_000)


def check(story: Story) -> list[str]:
    """Breaches."""
    breaches = [f"the ledger: {mismatch}" for mismatch in story.mismatches]
    in_doubt = {f"task:{task.id}" for task in story.tasks if settled_cost(task) is None}
    left = [hold for hold in story.open_holds if hold.id not in in_doubt]
    breaches += [f"hold {hold.id} on {hold.budget_id} for {hold.subject!r} is still open" for hold in left]
    kept = {hold.budget_id for hold in story.open_holds if hold.id in in_doubt}
    for budget in story.budgets:
        if budget.held != NOTHING and budget.id not in kept:
            breaches.append(f"budget {budget.id} holds {budget.held} at the end")
        if len(story.catalogs) > 1:
            continue  # an Attempt may be dearer than its Hold when prices rose in between; operators are told
        over = [name for name in COUNTED if 0 < budget.hard.of(name) < budget.spent.of(name)]
        breaches += [f"budget {budget.id} has spent {budget.spent} of {budget.hard}" for _ in over]
    tasks = {task.id: task for task in story.tasks}
    books = {budget.id: budget.spent.cost / NANOS for budget in story.budgets}
    for run in story.runs:
        if run.production is not None:
            breaches += _production(run, [tasks[name] for name in tasks_of(run) if name in tasks], books)
    return breaches


def _production(run: Run, tasks: list[Task], books: dict[str, Decimal]) -> list[str]:
    """What routing corrected after the Task had ended is not in the books of a production."""
    if any(attempt.late or attempt.resolution for task in tasks for attempt in task.attempts):
        return []
    spent = sum((task.spent.amount for task in tasks), Decimal(0))
    booked = books.get(run.budget_id, Decimal(0))
    return [] if booked == spent else [f"production {run.id} has {booked} on its budget, its tasks have spent {spent}"]
