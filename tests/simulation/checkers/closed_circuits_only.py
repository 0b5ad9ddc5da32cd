"""No Attempt was chosen in an epoch whose circuit had not yet left `circuit_open`, and only an Attempt of the present
epoch climbs the ladder of recovery (HLT-2, HLT-6, SEL)."""

from datetime import datetime

from services.health.domain.states import State
from services.health.domain.subjects import Subject
from tests.simulation.story import Story

NEEDS = ("trips", "probes", "steps of a recovery", "outcomes ignored as stale")
SHUT = frozenset({State.CIRCUIT_OPEN, State.DISABLED})
Opened = dict[tuple[Subject, int], datetime]


def check(story: Story) -> list[str]:
    """Breaches."""
    left = _left_open(story)
    attempts = {attempt.id: attempt for task in story.tasks for attempt in task.attempts}
    breaches = []
    for attempt in attempts.values():
        for subject, epoch in _epochs(attempt):
            if epoch > 1 and (subject, epoch) not in left:
                breaches.append(f"attempt {attempt.id} was chosen in epoch {epoch} of {subject}, which never let go")
    for stored in story.history:
        event, attempt = stored.event, attempts.get(stored.event.attempt_id)
        if event.reason != "probe_succeeded" or attempt is None:
            continue
        epoch = dict(_epochs(attempt)).get(stored.subject)
        if epoch != event.epoch:
            breaches.append(f"{stored.subject}: attempt {attempt.id} of epoch {epoch} helped epoch {event.epoch} up")
    return breaches


def _epochs(attempt) -> tuple[tuple[Subject, int], ...]:
    return (
        (Subject.channel(attempt.channel), attempt.channel_epoch),
        (Subject.supply(attempt.supply), attempt.supply_epoch),
    )


def _left_open(story: Story) -> Opened:
    """When each epoch first stood in a state in which it may be chosen."""
    found: Opened = {}
    for stored in story.history:
        if stored.event.after not in SHUT:
            found.setdefault((stored.subject, stored.event.epoch), stored.event.at)
    return found
