"""A Run as callers see it."""

from dataclasses import replace
from datetime import UTC, datetime

from services.runs import wire
from services.runs.domain import engine
from services.runs.domain.run import MAIN, Node, Order, Run, RunState, Usage

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_task_is_named_once_routing_has_it() -> None:
    """ATT-8: a Run that was cancelled before the start names no Task, for none can be read; a started one does."""
    node = Node(MAIN, "generate", task_id="t")
    run = Run("r", "a", RunState.PENDING, Order("clip", {}), node, NOW, Usage())
    cancelled, _ = engine.cancelled_before_start(replace(run, cancel_requested=True), NOW)
    started, _ = engine.started(run, NOW)
    named = [wire.run_to_proto(seen).nodes[0].task_id for seen in (run, cancelled, started)]
    assert named == ["", "", "t"]
