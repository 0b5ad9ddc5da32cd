"""Every steering input that was acknowledged is on record once, keeps its root over pauses, and is consumed by one node
or superseded at the end: never both, never twice, never lost (STEER-1..4)."""

from collections import Counter

from services.runs.domain.run import Event, Run
from tests.simulation.story import Story

NEEDS = ("steering accepted", "steering consumed", "steering superseded", "steering migrated")
ACCEPTED, CONSUMED, SUPERSEDED = "run.steer.accepted", "run.steer.consumed", "run.steer.superseded"


def check(story: Story) -> list[str]:
    """Breaches."""
    return [breach for run in story.runs for breach in _run(run, story.events[run.id], story.steered.get(run.id, ()))]


def _run(run: Run, events: list[Event], acknowledged: list[str]) -> list[str]:
    root: dict[str, str] = {}
    ends: Counter[str] = Counter()
    breaches = []
    for event in events:
        data = event.data
        if event.kind == ACCEPTED:
            source = data.get("source_event_id")
            if source and source not in root.values():
                breaches.append(f"run {run.id}: input {data['steering_event_id']} comes from {source}, which never was")
            root[data["steering_event_id"]] = source or data["steering_event_id"]
        elif event.kind in (CONSUMED, SUPERSEDED):
            known = root.get(data["steering_event_id"], "")
            if not known:
                breaches.append(f"run {run.id}: {event.kind} of {data['steering_event_id']}, which was never accepted")
            said = data.get("source_event_id") or data["steering_event_id"]
            if known and said != known:
                breaches.append(f"run {run.id}: {event.kind} names {said} as the root, which is {known}")
            ends[known] += 1
    roots = set(root.values())
    breaches += [
        f"run {run.id}: input {name} was acknowledged and is not there" for name in acknowledged if name not in roots
    ]
    breaches += [f"run {run.id}: input {name} ended {ends[name]} times" for name in roots if ends[name] != 1]
    if len(roots) != run.steering_count:
        breaches.append(f"run {run.id} has {len(roots)} inputs, its count says {run.steering_count}")
    return breaches
