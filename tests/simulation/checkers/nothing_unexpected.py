"""No context logged an error and no exception got lost: whatever befell us was a case that somebody had thought of."""

from tests.simulation.story import Story

NEEDS = ("killed", "paused", "request lost", "answer lost", "database away", "database unheard")


def check(story: Story) -> list[str]:
    """Breaches."""
    return sorted(set(story.errors))
