"""Whose the next place at a Supply is: the bounds of `domain.shares`, and a stage on which all places are taken."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.routing.app.submit_task import Submission, submit_task
from services.routing.domain.fairness import CLASS_WEIGHTS, RELEASE, WEIGHTS, charge, passed_at_most, size
from services.routing.domain.request import Request, Terms
from services.routing.domain.shares import FURTHEST_S, IN_A_ROW, KEPT, Line, Shares, Turn, due_at, turn_of
from services.routing.domain.task import Task
from services.routing.ports import TaskQuery
from tests.support.worlds import START
from tests.unit.routing.dispatch_fakes import Stage, stage
from tests.unit.routing.dispatch_offers import catalog, supply

QUERY = TaskQuery(page_size=1000)
LINES = [(tenant, model, name) for tenant in ("t", "u") for model in ("m", "n") for name in CLASS_WEIGHTS]


def turn(line: Line, amount: float = 1.0, due_s: float = 0.0) -> Turn:
    """A turn of that size."""
    return Turn(line, amount, START + timedelta(seconds=due_s))


def asked(created_s: float = 0.0, deadline_s: float | None = None, **terms: Any) -> Task:
    """A new Task."""
    deadline = None if deadline_s is None else START + timedelta(seconds=deadline_s)
    request = Request("t", "clip", {"duration_s": 5}, deadline=deadline, terms=Terms(**terms) if terms else None)
    return Task.begun("t1", request, "video", "CNY", START + timedelta(seconds=created_s))


@given(st.lists(st.lists(st.sampled_from(LINES), max_size=8), min_size=5, max_size=25), st.integers(1, 4))
def test_no_line_is_passed_more_often_than_the_bound(arrivals: list[list[Line]], places: int):
    """PRIO-1, ATT-9, CAP-11: whatever arrives and however many places come free at once, a waiting line is passed by
    any other no more than the stated bound allows, and by the release blockers of its model no more than `IN_A_ROW`
    times for each other placing of its model, and once before."""
    shares, waiting = Shares(), list[Turn]()
    passed: dict[Line, Counter[Line]] = {}
    for arrived in arrivals:
        waiting += [turn(line) for line in arrived]
        for taken in [waiting[place] for place in shares.order(waiting)[:places]]:
            shares.placed(taken)
            waiting.remove(taken)
            passed = {item.line: passed.get(item.line, Counter()) for item in waiting}
            for line, by in passed.items():
                by[taken.line] += 1
                if line == taken.line:
                    by.clear()
                _within(line, by)


def _within(line: Line, by: Counter[Line]) -> None:
    if line[2] == RELEASE:
        return
    ours = {other: number for other, number in by.items() if other[1] == line[1]}
    others = {other: number for other, number in ours.items() if other[2] != RELEASE}
    assert sum(ours.values()) - sum(others.values()) <= IN_A_ROW * (sum(others.values()) + 1), (line, by)
    for other, number in others.items():
        assert number <= passed_at_most(WEIGHTS[other[2]], WEIGHTS[line[2]]), (line, by)
    assert sum(by.values()) - sum(ours.values()) <= 2 * (sum(ours.values()) + 1), (line, by)


def test_low_keeps_its_share_beside_everything():
    """PRIO-1: with all classes waiting, 4 of 5 places are the release's, and `low` has its seventh of the others."""
    shares = Shares()
    waiting = [turn(("t", "m", name)) for _ in range(500) for name in CLASS_WEIGHTS]
    first = Counter(waiting[place].line[2] for place in shares.order(waiting)[:175])
    assert first == {"release": 140, "high": 20, "normal": 10, "low": 5}


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=40), st.lists(st.floats(0.1, 100), min_size=1, max_size=40))
def test_the_clock_goes_by_the_time_of_a_device(ours: list[float], theirs: list[float]):
    """PRIO-2: while both lines wait, what they have got in device time differs by no more than a Task of each, however
    many Tasks that is."""
    a, b = ("a", "m", "normal"), ("b", "m", "normal")
    waiting = [turn(a, amount, n) for n, amount in enumerate(ours)]
    waiting += [turn(b, amount, n) for n, amount in enumerate(theirs)]
    got, left = {a: 0.0, b: 0.0}, {a: len(ours), b: len(theirs)}
    for place in Shares().order(waiting):
        item = waiting[place]
        got[item.line] += item.size
        left[item.line] -= 1
        if not all(left.values()):
            break
        assert abs(got[a] - got[b]) <= max(ours) + max(theirs) + 1e-6


def test_device_time_is_seconds_by_area():
    """PRIO-2: a clip of 1080 lines takes a device as long as 2.25 of 720; what is not known counts as 720."""
    assert size("video", {"duration_s": 5, "resolution": "1080p"}) == 2.25 * size("video", {"duration_s": 5})
    assert size("video", {"duration_s": 5, "resolution": "4K"}) == 9 * size("video", {"duration_s": 5})
    assert size("video", {"duration_s": 5, "resolution": "wide"}) == size("video", {"duration_s": 5}) == 1
    assert charge("video", {"duration_s": 10}, "low") == 2.0


def test_a_line_that_had_nothing_earns_no_credit():
    """CAP-11: it goes first once, then shares."""
    shares = Shares()
    busy, idle = ("busy", "m", "normal"), ("idle", "m", "normal")
    shares.placed(turn(idle))
    for _ in range(100):
        shares.placed(turn(busy))
    waiting = [turn(line) for _ in range(10) for line in (busy, idle)]
    assert Counter(waiting[place].line for place in shares.order(waiting)[:10])[busy] >= 4


def test_what_is_due_first_goes_first_in_its_line():
    """PRIO-1: by deadline; a Task without one is due after a while, so that none starves; stage and degree of blocking
    bring it forward by a bounded time."""
    plain = due_at(asked())
    assert due_at(asked(deadline_s=60)) < plain == due_at(asked(deadline_s=99_999))
    assert due_at(asked(stage=2)) < due_at(asked(stage=1)) < plain
    assert due_at(asked(blocking=9)) < due_at(asked(blocking=1)) < plain
    assert plain < due_at(asked(created_s=FURTHEST_S, deadline_s=FURTHEST_S + 1, stage=999, blocking=999_999)) + (
        timedelta(seconds=2)
    )
    late, early = turn(LINES[0], due_s=9), turn(LINES[0], due_s=1)
    assert Shares().order([late, early]) == [1, 0]
    assert turn_of(asked(blocks_release=True)).line == ("t", "clip", RELEASE)


def test_many_lines_are_forgotten_without_harm():
    """CAP-11: what is remembered is bounded, and whoever is forgotten stands at the present."""
    shares = Shares()
    for number in range(KEPT + 50):
        shares.placed(turn((f"t{number}", "m", "normal")))
    assert shares.spread([("t1", "m", "normal"), ("new", "m", "normal")], 4) == {
        ("t1", "m", "normal"): 2, ("new", "m", "normal"): 2,
    }  # fmt: skip


def test_models_share_whatever_pace_they_had():
    """PRIO-1, CAP-11: a model that was fast for long neither goes before nor waits behind one that was slow, and the
    classes of the slow one keep their weights."""
    shares = Shares()
    fast, high, low = ("t", "fast", "normal"), ("t", "slow", "high"), ("t", "slow", "low")
    for number in range(1000):
        shares.placed(turn(fast))
        if not number % 100:
            shares.placed(turn((high, high, high, high, low)[number // 100 % 5]))
    waiting = [turn(line) for _ in range(40) for line in (fast, high, low)]
    first = Counter(waiting[place].line for place in shares.order(waiting)[:50])
    assert abs(first[fast] - 25) <= 1
    assert abs(first[high] - 4 * first[low]) <= 4


async def _begun(play: Stage) -> list[str]:
    """Tasks in the order in which they were submitted."""
    attempts = [item.attempts[0] for item in (await play.desk.store.find(QUERY))[0] if item.attempts]
    return [item.task_id for item in sorted(attempts, key=lambda item: item.submitted_at or START)]


@pytest.mark.parametrize("hints", [True, False])
async def test_who_comes_when_all_places_are_taken_does_not_stand_behind_the_backlog(hints: bool):
    """PRIO-1, CAP-10, CAP-11, ATT-9: with one place and forty Tasks of one tenant waiting, what a release waits for is
    placed next, and another tenant's Task within its share, by hints and by the scan alone."""
    play = stage(offers=catalog(supply("a/clip", 1)), hints=hints)
    for number in range(40):
        await play.submit(f"many-{number:02}", tenant="many")
    await play.pass_time(5)
    before = len(await _begun(play))
    assert before < 10
    await play.submit("few", tenant="few")
    release = Request("few", "clip", {"prompt": "p", "duration_s": 5}, priority="low", terms=Terms(blocks_release=True))
    await submit_task(play.desk, Submission("release", release))
    await play.pass_time(20)
    after = (await _begun(play))[before:]
    assert after.index("release") <= 1
    assert after.index("few") <= 3
