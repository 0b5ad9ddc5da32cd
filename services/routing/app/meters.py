"""What Tasks, their Attempts and their selections are counted by. Called once something is on record."""

from datetime import datetime

from libs.telemetry import metrics, names
from services.routing.domain.decision import Decision
from services.routing.domain.task import TERMINAL_TASKS, Attempt, Task


def selected(model: str, decision: Decision, seconds: float) -> None:
    """Count one round, with the time that the pure selection took."""
    tier = decision.tier if decision.chosen else ""
    metrics.PROCESS.counter(names.SELECTIONS, model=model, result=decision.verdict.value, tier=tier).inc()
    metrics.PROCESS.histogram(names.SELECTION_SECONDS, model=model).observe(seconds)


def submitted(task: Task, attempt: Attempt, now: datetime) -> None:
    """Time how long a Task waited for its first Attempt."""
    if attempt.number == 1:
        waited_s = (now - task.created_at).total_seconds()
        metrics.PROCESS.histogram(names.TASK_WAIT_SECONDS, kind=task.kind).observe(waited_s)


def attempt_ended(attempt: Attempt) -> None:
    """Count an Attempt that has ended, and time it from its submission."""
    told = {"supply": attempt.supply, "state": attempt.state.value}
    code = attempt.failure.code if attempt.failure else ""
    metrics.PROCESS.counter(names.ATTEMPTS_ENDED, **told, code=code).inc()
    if attempt.submitted_at is not None and attempt.finished_at is not None:
        took_s = (attempt.finished_at - attempt.submitted_at).total_seconds()
        metrics.PROCESS.histogram(names.ATTEMPT_SECONDS, supply=attempt.supply).observe(took_s)


def task_ended(task: Task) -> None:
    """Count a Task, if it has ended."""
    if task.state in TERMINAL_TASKS:
        metrics.PROCESS.counter(names.TASKS_ENDED, model=task.request.model, state=task.state.value).inc()
