"""The events of health are numbered without a gap and fold without a contradiction (HLT-12)."""

from services.health.domain.events import Health, applied
from services.health.domain.subjects import Subject
from tests.simulation.story import Story

NEEDS = ("trips", "recoveries")


def check(story: Story) -> list[str]:
    """Breaches."""
    states: dict[Subject, tuple[int, Health | None]] = {}
    for stored in story.history:
        number, health = states.get(stored.subject, (0, None))
        if stored.sequence != number + 1:
            return [f"{stored.subject}: event {stored.sequence} follows {number}"]
        try:
            states[stored.subject] = stored.sequence, applied(health, stored.event)
        except ValueError as error:
            return [f"{stored.subject}: {error}"]
    return []
