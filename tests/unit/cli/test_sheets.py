"""What a history tells of its stages, its order and its time, and what would be found wrong in it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from cli.demo import sheets

START = datetime(2026, 1, 1, tzinfo=UTC)


def history(*told: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Events a second apart."""
    return [
        {"sequence": n, "kind": kind, "data": data, "created_at": (START + timedelta(seconds=n)).isoformat()}
        for n, (kind, data) in enumerate(told, start=1)
    ]


def money(amount: str) -> dict[str, str]:
    """An amount as events tell it."""
    return {"currency": "CNY", "amount": amount}


def ready(node: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """A generation that begins."""
    return "node_ready", {"node": node, "task_id": node, "input": {}, **more}


def test_money_is_told_by_stage_and_a_hold_that_stays_is_found() -> None:
    """COST-9: what was set aside and what it cost, by stage; a Hold without a settlement is named."""
    events = history(
        ("budget_held", {"node": "frames/A", "hold_id": "1", "amount": money("2.00")}),
        ("attempt_started", {"node": "frames/A"}),
        ("budget_held", {"node": "film", "hold_id": "2", "amount": money("6.00")}),
        ("budget_settled", {"node": "frames/A", "hold_id": "1", "amount": money("0.50")}),
    )
    frames, film = sheets.stages(events)
    assert frames == sheets.Stage("frames", 1, 1, Decimal("2.00"), Decimal("0.50"))
    assert (film.name, film.spent) == ("film", 0)
    assert sheets.unsettled(events) == ["2"]


def test_a_gap_and_a_state_that_differs_are_found() -> None:
    """EVENT-1, EVENT-3: sequences run from 1 without a gap, and the last word about a node is its state."""
    events = history(
        ("node_failed", {"node": "a"}),
        ("node_completed", {"node": "a"}),
        ("gate_decided", {"node": "g", "decision": "approve"}),
    )
    assert sheets.gaps(events) == []
    assert sheets.gaps(events[1:]) == [2, 3]
    assert sheets.rebuilt(events) == {"a": "succeeded", "g": "succeeded"}


def test_who_does_not_wait_for_a_canary_is_found() -> None:
    """GATE-3: of a class that is not released one item begins; one more is told."""
    items = [{"id": name, "shot_class": "talk"} for name in "ABC"]
    begins = ("node_ready", {"node": "shots", "items": items})
    released = ("canary_released", {"node": "shots", "shot_class": "talk"})
    assert sheets.first_of_class(history(begins, ready("shots/A"), released, ready("shots/B")), "shots") == []
    assert sheets.first_of_class(history(begins, ready("shots/A"), ready("shots/B"), released), "shots") == ["shots/B"]


def test_the_style_of_a_shot_is_that_of_when_it_began() -> None:
    """STEER-2: before the input none has it, after it all have."""
    grey = {"input": {"prompt": "a quay in grey"}}
    steer = ("run.steer.accepted", {"kind": "style"})
    assert sheets.styled(history(ready("m/A"), steer, ready("m/B", **grey)), "m", "grey") == (1, [])
    assert sheets.styled(history(ready("m/A", **grey), steer, ready("m/B")), "m", "grey") == (1, ["m/A", "m/B"])


def test_what_begins_after_the_soft_limit_is_counted() -> None:
    """COST-10: what was at work before it is borne; whoever begins after it finds at most so many."""
    soft = ("budget_soft_limit", {"node": "m/A"})
    ends = ("node_completed", {"node": "m/A"})
    assert sheets.most_begun_after_soft(history(ready("m/A"), ready("m/B"), soft, ends, ready("m/C"))) == 2
    assert sheets.most_begun_after_soft(history(ready("m/A"), ready("m/B"), soft, ready("m/C"))) == 3


def test_the_timeline_tells_what_is_of_note_with_what_happened_outside() -> None:
    """OPS-8: in the order of time, in seconds from the beginning."""
    events = history(
        ("run_created", {}),
        ("node_waiting", {"node": "a"}),
        ("gate_decided", {"node": "g", "decision": "approve", "who": "w"}),
    )
    line = sheets.timeline(events, [(START + timedelta(seconds=2), "kill -9")])
    assert line == [(0.0, "the production is accepted"), (1.0, "kill -9"), (2.0, "g: approve by w")]
