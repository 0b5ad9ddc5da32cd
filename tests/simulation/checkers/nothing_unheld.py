"""Nothing that may cost money reaches a provider without a Hold: each job is of a Task whose Hold the ledger had taken
before, and held then; and all that Tasks have cost is what the ledger says was spent (COST-9, COST-11)."""

from decimal import Decimal

from services.routing.domain.spending import settled_cost
from services.routing.domain.task import Task
from tests.simulation.story import Story

NEEDS = ("jobs at providers", "holds taken", "attempts followed by another")
NANOS = Decimal(1_000_000_000)


def check(story: Story) -> list[str]:
    """Breaches."""
    owners = {attempt.client_token: task for task in story.tasks for attempt in task.attempts}
    breaches = []
    for job in story.jobs:
        task = owners.get(job.token)  # whose token it is, is another law's
        held = story.holds.get(hold_of(task)) if task else None
        if task and held is None:
            breaches.append(f"job {job.id} of task {task.id} has no Hold {hold_of(task)}")
        elif held and not held.at(job.made_at):
            breaches.append(f"job {job.id} was made at {job.made_at:.2f} s, its Hold was held {held}")
    return breaches + _sums(story)


def hold_of(task: Task) -> str:
    """The Hold that pays for a Task: its caller's own, or its."""
    terms = task.request.terms
    return terms.hold if terms is not None and terms.hold else f"task:{task.id}"


def _sums(story: Story) -> list[str]:
    """Of Tasks that no production pays for, and of which everything is known."""
    open_ids = {hold.id for hold in story.open_holds}
    own = [task for task in story.tasks if hold_of(task) == f"task:{task.id}"]
    lost = [task.id for task in own if settled_cost(task) is None and task.attempts and hold_of(task) not in open_ids]
    breaches = [f"task {name} is open, and its Hold is not" for name in lost]
    spent = sum((task.spent.amount for task in own if settled_cost(task) is not None), Decimal(0))
    booked = sum((item.spent.cost for item in story.budgets if item.level == "tenant"), 0) / NANOS
    return breaches + ([f"tenants have {booked} on their budgets, their tasks have cost {spent}"] * (booked != spent))
