"""Capacity is never exceeded, and one time to live after the last Run nothing is held any more (CAP-1..4)."""

from tests.simulation.story import Story


def check(story: Story) -> list[str]:
    """Breaches; those of the limits were witnessed at the moment of the grant."""
    left = [f"lease {lease.id} on {lease.supply_id} was never returned" for lease in story.leases]
    return [*story.witnessed, *left]
