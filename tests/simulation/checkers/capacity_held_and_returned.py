"""Capacity is never exceeded, what is free is not refused, and one time to live after the last Run nothing is held any
more (CAP-1..4, CAP-4a)."""

from tests.simulation.story import Story

NEEDS = (
    "slots granted", "slots lapsed", "refused by concurrency", "refused by requests", "refused by health",
    "granted on the ladder", "granted beside older work",
)  # fmt: skip


def check(story: Story) -> list[str]:
    """Breaches; those of the limits were witnessed at the moment of the grant."""
    left = [f"lease {lease.id} on {lease.supply_id} was never returned" for lease in story.leases]
    return [*story.witnessed, *left]
