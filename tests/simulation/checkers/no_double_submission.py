"""The providers' ledger: one token is one job, and no Task has a second job while its first may still run or has
delivered (ATT-5, ATT-6, VER-7)."""

from itertools import pairwise

from tests.simulation.providers import Job
from tests.simulation.story import Story

NEEDS = (
    "uncertain submissions", "uncertain, then accepted", "uncertain, then not_accepted", "uncertain, then unresolved",
    "switches of supply",
)  # fmt: skip


def check(story: Story) -> list[str]:
    """Breaches."""
    owners = {attempt.client_token: task.id for task in story.tasks for attempt in task.attempts}
    by_token: dict[str, list[Job]] = {}
    by_task: dict[str, list[Job]] = {}
    breaches = []
    for job in sorted(story.jobs, key=lambda job: job.made_at):
        by_token.setdefault(job.token, []).append(job)
        if job.token in owners:
            by_task.setdefault(owners[job.token], []).append(job)
        else:
            breaches.append(f"job {job.id} carries the token {job.token}, which no attempt has")
    breaches += [
        f"token {token} was submitted {len(jobs)} times: {', '.join(job.id for job in jobs)}"
        for token, jobs in by_token.items()
        if len(jobs) > 1
    ]
    for task_id, jobs in by_task.items():
        breaches += [f"task {task_id}: {_about(a, b)}" for a, b in pairwise(jobs) if not _over(a, b)]
    return breaches


def _over(earlier: Job, later: Job) -> bool:
    """Whether the earlier job had failed or was stopped when the later one was made."""
    ended = earlier.ended_at(later.made_at)
    return ended is not None and earlier.state(later.made_at) != "succeeded"


def _about(earlier: Job, later: Job) -> str:
    return f"{later.id} was made at {later.made_at:.2f} s while {earlier.id} was {earlier.state(later.made_at)}"
