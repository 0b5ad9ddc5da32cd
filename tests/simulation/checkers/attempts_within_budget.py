"""At most `max_attempts` Attempts count, they are numbered in turn, one lives at a time, and none begins after the
window for new Attempts has closed (ATT-1..3, SEL-25)."""

from datetime import timedelta
from itertools import pairwise

from tests.simulation.offers import MAX_ATTEMPTS
from tests.simulation.story import Story

SKEW = timedelta(seconds=0.5)
NEEDS = ("attempts followed by another", "runs failed")


def check(story: Story) -> list[str]:
    """Breaches."""
    breaches = []
    for task in story.tasks:
        counted = sum(1 for attempt in task.attempts if attempt.counted)
        if counted > MAX_ATTEMPTS:
            breaches.append(f"task {task.id}: {counted} attempts, {MAX_ATTEMPTS} are allowed")
        numbers = [attempt.number for attempt in task.attempts]
        if numbers != list(range(1, len(numbers) + 1)):
            breaches.append(f"task {task.id}: attempts are numbered {numbers}")
        last = task.created_at + timedelta(seconds=story.window_s) + SKEW
        breaches += [
            f"task {task.id}: attempt {attempt.number} began after the window"
            for attempt in task.attempts
            if attempt.submitted_at is not None and attempt.submitted_at > last
        ]
        breaches += [
            f"task {task.id}: attempt {later.number} was reserved before attempt {earlier.number} had ended"
            for earlier, later in pairwise(task.attempts)
            if earlier.finished_at is None
            or later.reserved_at is None
            or later.reserved_at + SKEW < earlier.finished_at
        ]
    return breaches
