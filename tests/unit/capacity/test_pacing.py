"""AIMD as a pure object: exhaustive over small histories, and the figures that the rules name."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from services.capacity.domain import pacing
from services.capacity.domain.pacing import SLOT, UNPACED, Feedback, Outcome, Pace, told
from tests.support.worlds import START

SECOND = timedelta(seconds=1)
SUCCEEDED, CONGESTED = Feedback(Outcome.SUCCEEDED), Feedback(Outcome.CONGESTED)
Tell = Callable[[Pace, Feedback, datetime, datetime, int, int], Pace]


def after(pace: Pace, feedback: Feedback, *, began: int, now: int, in_use: int = 10, slots: int = 10) -> Pace:
    """One release, times in seconds."""
    return told(pace, feedback, START + began * SECOND, START + now * SECOND, in_use, slots)


def test_a_burst_of_refusals_is_one_cut() -> None:
    """CAP-7: twenty simultaneous 429s cut once; what began after the cut cuts again."""
    pace = UNPACED
    for number in range(20):
        pace = after(pace, CONGESTED, began=number % 5, now=10 + number, in_use=20 - number, slots=20)
    assert pace.slots == 14
    assert pace.cut_at == START + 10 * SECOND
    again = after(pace, CONGESTED, began=11, now=40, in_use=14, slots=20)
    assert again.limit == 9800


def test_retry_after_freezes_and_cuts_nothing() -> None:
    """CAP-7: a named time freezes until then, never shorter than before, an hour at most; the limit stays."""
    pace = after(UNPACED, Feedback(Outcome.CONGESTED, 30 * SECOND), began=0, now=10)
    assert (pace.limit, pace.cut_at, pace.frozen_until) == (None, None, START + 40 * SECOND)
    assert pace.frozen(START + 39 * SECOND)
    assert not pace.frozen(START + 40 * SECOND)
    assert after(pace, Feedback(Outcome.CONGESTED, 5 * SECOND), began=0, now=11) == pace
    longest = after(pace, Feedback(Outcome.CONGESTED, 7 * 24 * 3600 * SECOND), began=0, now=10)
    assert longest.frozen_until == START + 10 * SECOND + timedelta(hours=1)


def test_success_raises_slowly_and_lifts_the_limit_at_the_end() -> None:
    """CAP-7: about one slot for as many successes as there are slots, until all slots are back."""
    pace = after(UNPACED, CONGESTED, began=0, now=1)
    assert pace.limit == 7000
    for _ in range(8):
        pace = after(pace, SUCCEEDED, began=2, now=3, in_use=7)
    assert pace.slots == 8
    successes = 0
    while pace.limit is not None:
        pace = after(pace, SUCCEEDED, began=2, now=3, in_use=8)
        successes += 1
    assert 15 <= successes <= 20
    assert pace == Pace(None, 0, START + SECOND)


def test_who_asks_for_little_proves_nothing_about_much() -> None:
    """CAP-7: no success raises while under half of the slots is in use, nor one from before the cut."""
    pace = after(UNPACED, CONGESTED, began=0, now=5)
    assert after(pace, SUCCEEDED, began=6, now=7, in_use=3) == pace
    assert after(pace, SUCCEEDED, began=5, now=7, in_use=7) == pace
    assert after(pace, SUCCEEDED, began=6, now=7, in_use=4) != pace


def test_a_level_without_a_gate_is_paced_too() -> None:
    """CAP-7: without configured slots the limit is lifted where it was when the provider refused."""
    pace = after(UNPACED, CONGESTED, began=0, now=1, in_use=5, slots=0)
    assert (pace.limit, pace.ceiling) == (3500, 5)
    for _ in range(8):
        pace = after(pace, SUCCEEDED, began=2, now=3, in_use=4, slots=0)
    assert pace.limit is None


@dataclass(frozen=True, slots=True)
class Node:
    """A pace, and leases by the time at which they began."""

    pace: Pace = UNPACED
    leases: tuple[int, ...] = ()
    now: int = 0
    begun: int = 0


SLOTS, STEPS, LEASES = 3, 3, 5
FEEDBACKS = (Feedback(), SUCCEEDED, CONGESTED, Feedback(Outcome.CONGESTED, SECOND))


def breach(tell: Tell) -> str:
    """The first law that a history of a few leases breaks, empty if none does."""
    seen, queue = {Node()}, deque([Node()])
    while queue:
        node = queue.popleft()
        nexts = []
        if node.now < STEPS:
            nexts.append(replace(node, now=node.now + 1))
        if len(node.leases) < SLOTS and node.begun < LEASES:
            leases = tuple(sorted((*node.leases, node.now)))
            nexts.append(replace(node, leases=leases, begun=node.begun + 1))
        for began in set(node.leases):
            left = list(node.leases)
            left.remove(began)
            for feedback in FEEDBACKS:
                moved = tell(
                    node.pace, feedback, START + began * SECOND, START + node.now * SECOND, len(node.leases), SLOTS
                )
                if law := _broken(node, began, feedback, moved):
                    return law
                nexts.append(replace(node, pace=moved, leases=tuple(left)))
        for following in nexts:
            if following not in seen:
                seen.add(following)
                queue.append(following)
    return "" if len(seen) > 2000 else f"only {len(seen)} nodes"


def _broken(node: Node, began: int, feedback: Feedback, moved: Pace) -> str:
    """What every step must keep, said without the code of the step."""
    before = node.pace
    inside = before.cut_at is None or START + began * SECOND > before.cut_at
    held = SLOTS * SLOT if before.limit is None else before.limit
    holds = SLOTS * SLOT if moved.limit is None else moved.limit
    if holds < SLOT:
        return "no slot was left"
    if holds > SLOTS * SLOT:
        return "more slots than there are"
    if feedback.retry_after:
        if holds != held or moved.cut_at != before.cut_at:
            return "a freeze cut"
        return "" if moved.frozen(START + node.now * SECOND) else "no freeze"
    if moved.frozen_until != before.frozen_until:
        return "froze unasked"
    if holds < held and feedback.outcome is not Outcome.CONGESTED:
        return "cut without congestion"
    if moved.cut_at != before.cut_at and not inside:
        return "cut twice in one congestion epoch"
    if feedback.outcome is Outcome.CONGESTED:
        if inside and (
            holds > max(SLOT, len(node.leases) * SLOT * 7 // 10) or moved.cut_at != START + node.now * SECOND
        ):
            return "congestion that cut nothing"
        return "raised by congestion" if holds > held else ""
    if holds > held and (feedback.outcome is not Outcome.SUCCEEDED or not inside):
        return "raised without a new success"
    if holds > held + SLOT:
        return "raised by more than a slot"
    if holds > held and len(node.leases) * 2 * SLOT < held:
        return "raised while idle"
    if holds == held < SLOTS * SLOT and feedback.outcome is Outcome.SUCCEEDED and inside:
        return "" if len(node.leases) * 2 * SLOT < held else "a success that raised nothing"
    return ""


def test_no_history_breaks_the_pace() -> None:
    """VER-2, CAP-7: over every history of five leases in three seconds each law holds at each step."""
    assert breach(told) == ""


def every_time(pace: Pace, feedback: Feedback, reserved_at: datetime, now: datetime, in_use: int, slots: int) -> Pace:
    """Cuts at every 429."""
    return told(replace(pace, cut_at=None), feedback, reserved_at, now, in_use, slots)


def to_nothing(pace: Pace, feedback: Feedback, reserved_at: datetime, now: datetime, in_use: int, slots: int) -> Pace:
    """Knows no least slot."""
    moved = told(pace, feedback, reserved_at, now, in_use, slots)
    return replace(moved, limit=moved.limit // 2) if moved.limit == SLOT else moved


def cutting_freeze(
    pace: Pace, feedback: Feedback, reserved_at: datetime, now: datetime, in_use: int, slots: int
) -> Pace:
    """Takes Retry-After for a cut as well."""
    moved = told(pace, feedback, reserved_at, now, in_use, slots)
    return pacing.cut(moved, now, in_use, slots) if feedback.retry_after else moved


def deaf(pace: Pace, feedback: Feedback, reserved_at: datetime, now: datetime, in_use: int, slots: int) -> Pace:
    """Does not freeze."""
    return pace if feedback.retry_after else told(pace, feedback, reserved_at, now, in_use, slots)


def hasty(pace: Pace, feedback: Feedback, reserved_at: datetime, now: datetime, in_use: int, slots: int) -> Pace:
    """Lifts the limit with the first success."""
    moved = told(pace, feedback, reserved_at, now, in_use, slots)
    return replace(moved, limit=None) if feedback == SUCCEEDED and moved != pace else moved


def idle(pace: Pace, feedback: Feedback, reserved_at: datetime, now: datetime, in_use: int, slots: int) -> Pace:
    """Raises whoever asks for little."""
    return (
        told(pace, feedback, reserved_at, now, max(in_use, slots), slots)
        if feedback == SUCCEEDED
        else told(pace, feedback, reserved_at, now, in_use, slots)
    )


def stale(pace: Pace, feedback: Feedback, reserved_at: datetime, now: datetime, in_use: int, slots: int) -> Pace:
    """Lets successes from before the cut raise."""
    if feedback == SUCCEEDED:
        return pacing.raised(pace, in_use, slots)
    return told(pace, feedback, reserved_at, now, in_use, slots)


def stuck(pace: Pace, feedback: Feedback, reserved_at: datetime, now: datetime, in_use: int, slots: int) -> Pace:
    """Never comes back."""
    return pace if feedback == SUCCEEDED else told(pace, feedback, reserved_at, now, in_use, slots)


def meek(pace: Pace, feedback: Feedback, reserved_at: datetime, now: datetime, in_use: int, slots: int) -> Pace:
    """Never cuts."""
    return pace if feedback == CONGESTED else told(pace, feedback, reserved_at, now, in_use, slots)


MUTANTS: list[tuple[Tell, str]] = [
    (every_time, "cut twice in one congestion epoch"),
    (to_nothing, "no slot was left"),
    (cutting_freeze, "a freeze cut"),
    (deaf, "no freeze"),
    (hasty, "raised by more than a slot"),
    (idle, "raised while idle"),
    (stale, "raised without a new success"),
    (stuck, "a success that raised nothing"),
    (meek, "congestion that cut nothing"),
]


@pytest.mark.parametrize("tell, law", MUTANTS)
def test_a_wrong_pace_is_caught(tell: Tell, law: str) -> None:
    """VER-2: each known mistake in the pace breaks the law that it should."""
    assert breach(tell) == law
