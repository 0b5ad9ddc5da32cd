"""Every Run's events are numbered without a gap, the last one and only that is terminal, a customer's stream showed
each of them once, and they alone tell the Run (EVENT-1, EVENT-3, SSE)."""

from collections.abc import Sequence
from dataclasses import replace

from services.runs.domain.history import rebuilt
from services.runs.domain.run import TERMINAL_KINDS, Event
from tests.simulation.story import Story

NEEDS = ("events", "streams taken up")
ENDS = frozenset(TERMINAL_KINDS.values())


def check(story: Story) -> list[str]:
    """Breaches."""
    breaches = []
    for run in story.runs:
        events = story.events[run.id]
        numbers = [event.sequence for event in events]
        whole = list(range(1, run.last_sequence + 1))
        if numbers != whole:
            breaches.append(f"run {run.id}: events {numbers}, last is {run.last_sequence}")
        elif rebuilt(events) != replace(run, revision=1):
            breaches.append(f"run {run.id}: its events tell another Run than is kept")
        ends = [event.sequence for event in events if event.kind in ENDS]
        if not _one_end_each(events):
            breaches.append(f"run {run.id} ({run.state}): terminal events at {ends} of {run.last_sequence}")
        begun = [event.data.get("attempt_id") for event in events if event.kind == "attempt_started"]
        ended = [event.data.get("attempt_id") for event in events if event.kind == "attempt_finished"]
        if len(set(begun)) != len(begun) or sorted(map(str, begun)) != sorted(map(str, ended)):
            breaches.append(f"run {run.id}: attempts begun {begun}, ended {ended}")
        seen = story.seen.get(run.id)
        if seen is not None and list(seen) != whole:
            breaches.append(f"run {run.id}: a customer saw {list(seen)} of {run.last_sequence}")
    return breaches


def _one_end_each(events: Sequence[Event]) -> bool:
    """The last event is terminal, and after any other end the Run was redriven before it ended again."""
    ended = False
    for event in events:
        if event.kind in ENDS:
            if ended:
                return False
            ended = True
        elif event.kind == "run_redriven":
            ended = False
    return ended and events[-1].kind in ENDS
