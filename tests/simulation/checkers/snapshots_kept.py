"""What is in flight keeps its snapshot: an Attempt is submitted to the account, under the name and for the price of the
revision that it was decided by, whatever was put in force since (CAT-2, CAT-3)."""

from decimal import Decimal

from services.routing.domain.task import Attempt
from tests.simulation.offers import SECONDS
from tests.simulation.providers import Job
from tests.simulation.story import Story

NEEDS = ("attempts under a superseded revision",)


def check(story: Story) -> list[str]:
    """Breaches."""
    jobs = {job.token: job for job in story.jobs}
    breaches = []
    for task in story.tasks:
        for attempt in task.attempts:
            breaches += _about(attempt, jobs.get(attempt.client_token), story)
    return breaches


def _about(attempt: Attempt, job: Job | None, story: Story) -> list[str]:
    catalog = story.catalogs.get(attempt.catalog_revision)
    if catalog is None:
        return [f"attempt {attempt.id} names revision {attempt.catalog_revision}, which was never committed"]
    supply = catalog.supplies[attempt.supply]
    price = Decimal(str(catalog.prices[supply.prices[0]].spec["rate"])) * SECONDS
    breaches = []
    if attempt.quote.amount != price:
        breaches.append(f"attempt {attempt.id} is quoted {attempt.quote.amount}, its revision says {price}")
    if job is not None and (job.account, job.model) != (supply.channel, supply.upstream_model):
        breaches.append(f"attempt {attempt.id} of {supply.upstream_model} became a job of {job.account}'s {job.model}")
    return breaches
