"""An Attempt that has ended stays as it ended, and one that was followed by another never speaks for its Task again: a
late word moves nothing and pays nothing (ATT-4, ATT-7)."""

from services.routing.domain.task import TERMINAL_ATTEMPTS, AttemptState
from tests.simulation.story import Story

NEEDS = ("late words of a superseded attempt", "late writes fenced")


def check(story: Story) -> list[str]:
    """Breaches; those of single writes were witnessed while they happened."""
    breaches = [*story.superseded]
    for task in story.tasks:
        for attempt in task.attempts[:-1]:
            if attempt.state not in TERMINAL_ATTEMPTS or attempt.state is AttemptState.SUCCEEDED:
                breaches.append(f"task {task.id} went on after attempt {attempt.number}, which is {attempt.state}")
    return breaches
