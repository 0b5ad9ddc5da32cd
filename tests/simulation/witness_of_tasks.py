"""Sees every claim and every write of a Task: who takes over from whom, and whether what has ended stays ended."""

from collections import Counter
from collections.abc import Sequence

from services.routing.domain.task import TERMINAL_ATTEMPTS, AttemptState, Task
from services.routing.ports import Write


class TaskWitness:
    """Breaches of supersession while they happen, and counts of what happened (`seen`)."""

    def __init__(self, seen: Counter[str]) -> None:
        self._seen = seen
        self._holders: dict[str, str] = {}
        self._attempts: dict[str, dict[str, AttemptState]] = {}
        self.breaches: list[str] = []

    def claimed(self, tasks: Sequence[Task], worker: str) -> None:
        """These Tasks are that worker's now."""
        for task in tasks:
            holder = self._holders.get(task.id, worker)
            self._seen["takeovers"] += holder != worker
            self._holders[task.id] = worker

    def fenced(self, write: Write) -> None:
        """A write came too late."""
        self._seen["late writes fenced"] += 1
        known = len(self._attempts.get(write.before.id, ()))
        self._seen["late words of a superseded attempt"] += known > len(write.before.attempts)

    def saved(self, write: Write, task: Task) -> None:
        """A write was taken; `task` is what is kept now."""
        if write.until is None:
            self._holders.pop(task.id, None)
        before = self._attempts.get(task.id, {})
        now = self._attempts[task.id] = {attempt.id: attempt.state for attempt in task.attempts}
        for attempt_id, state in before.items():
            if attempt_id not in now:
                self.breaches.append(f"task {task.id}: attempt {attempt_id} was {state} and is gone")
            elif state in TERMINAL_ATTEMPTS and now[attempt_id] != state:
                self.breaches.append(f"attempt {attempt_id} had ended as {state} and is {now[attempt_id]}")
        for attempt in task.attempts[:-1]:
            if attempt.state not in TERMINAL_ATTEMPTS:
                self.breaches.append(f"attempt {attempt.id} was followed by another while it was {attempt.state}")
        for attempt_id, state in now.items():
            self._count(before.get(attempt_id), state)

    def _count(self, before: AttemptState | None, now: AttemptState) -> None:
        if now == before:
            return
        if now is AttemptState.SUBMISSION_UNCERTAIN:
            self._seen["uncertain submissions"] += 1
        elif before is AttemptState.SUBMISSION_UNCERTAIN:
            self._seen[f"uncertain, then {now}"] += 1
