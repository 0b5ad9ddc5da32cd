"""A delivered result is the content of exactly one job that its Task had, which was charged once (VER-7, ATT-4)."""

from services.provider_adapter.domain.media import digest
from services.routing.domain.task import AttemptState, TaskState
from tests.simulation.story import Story

NEEDS = ("runs succeeded", "cancels that raced and lost", "cancels that raced and won")


def check(story: Story) -> list[str]:
    """Breaches."""
    made = {digest(job.content): job for job in story.jobs}
    breaches = []
    for task in story.tasks:
        winners = [attempt for attempt in task.attempts if attempt.state is AttemptState.SUCCEEDED]
        if task.state is not TaskState.SUCCEEDED:
            breaches += [f"task {task.id} ended as {task.state} with a success in attempt {w.number}" for w in winners]
            continue
        tokens = {attempt.client_token for attempt in task.attempts}
        charged = [job for job in story.jobs if job.token in tokens and job.charged(story.now)]
        digests = [artifact.sha256 for artifact in task.result.artifacts] if task.result else []
        jobs = [made.get(sha256) for sha256 in digests]
        if len(winners) != 1 or len(jobs) != 1 or jobs[0] is None or jobs[0].id != winners[0].provider_task_id:
            breaches.append(f"task {task.id}: attempts {[w.number for w in winners]} delivered {digests}")
        if len(charged) != 1:
            breaches.append(f"task {task.id} succeeded with {[job.id for job in charged]} charged")
    return breaches
