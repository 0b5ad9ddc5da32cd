"""The table of a node's moves: what is committed obeys it, people see it, and each state has one way on."""

from dataclasses import replace
from typing import Any

import pytest

from libs.kernel.canonical import plain
from services.runs.app.command_run import cancel_run
from services.runs.domain.history import applied, born
from services.runs.domain.moves import MONEY_AGAIN, NODE_MOVES, RECOVERY, REDRIVEN, IllegalMove, diagram, recovery
from services.runs.domain.nodes_history import NODE_EVENTS
from services.runs.domain.run import ENDED_NODES, Decision, Draft, Node, NodeState, Question, Run
from tests.support.worlds import START
from tests.unit.runs.guide import GUIDE, redrawn
from tests.unit.runs.test_gates import house, production
from tests.unit.runs.test_productions import episode

NODE = "frames/S01"
MONEY = {"currency": "CNY", "amount": "1.00"}
ERROR = {"category": "content", "scope": "request", "retryable": False, "code": "check_failed", "message": "no"}
ASKED = Question("q", NODE, "budget", "More?", "", "h", (Decision.STOP,), START, "lead", "rest", START, 60.0)
SAID: dict[str, dict[str, Any]] = {
    "node_failed": {"error": ERROR},
    "node_completed": {"input_hash": "h", "artifact_list": []},
    "review_due": {"reason": "minutes", "review": {**plain(ASKED), "spent": None}, "minutes": 1},
    "gate_opened": {"reason": "gate", "review": {**plain(ASKED), "spent": None}},
    "gate_decided": {"decision": "approve", "subject_hash": "h", "artifacts": [], "review_id": "q"},
    "budget_freed": {"budget_id": "b", "nodes": [NODE], "reviews": []},
    "budget_held": {"hold_id": "h", "budget_id": "b", "amount": MONEY, "attempts": 1},
    "attempt_started": {"attempt_id": "a", "supply": "a/one"},
    "attempt_finished": {"attempt_id": "a", "state": "failed"},
    "artifact_written": {"sha256": "0" * 64, "media_type": "image/png", "size_bytes": 1},
    "canary_released": {"shot_class": "action"},
}


def run_with(state: NodeState, kind: str = "") -> Run:
    """A Run with one item of a map in that state; before an event about money, it lacks some and somebody is asked."""
    told = {"tenant": "a", "labels": {}, "node_list": [{"id": "frames", "kind": "map"}]}
    run = born("r", told, START)
    lacking = kind in MONEY_AGAIN
    node = Node(NODE, "gate" if kind == "review_due" else "generate", state=state, parent="frames", refused=lacking)
    return replace(run, nodes={**run.nodes, NODE: node}, questions={"q": ASKED} if lacking else {})


def draft_of(kind: str, to: NodeState) -> Draft:
    """An event of that kind, such as leads to that state if any does."""
    if kind == REDRIVEN:
        return Draft(kind, {"nodes": [NODE], "resumed": [NODE] if to is NodeState.RUNNING else []})
    if kind == "node_waiting":
        return Draft(kind, {"node": NODE, "reason": "why", "state": to.value})
    if kind == "node_ready" and to is NodeState.CANCELLED:
        return Draft(kind, {"node": "frames", "items": [], "item_kind": "generate", "input_hash": "h"})
    if kind in MONEY_AGAIN and kind.startswith("review"):
        return Draft(kind, {"node": NODE, "review_id": "q", "minutes": 1})
    return Draft(kind, {"node": NODE, **SAID.get(kind, {})})


def after(run: Run, draft: Draft) -> NodeState:
    """Where the node is then."""
    return applied(run, [draft], START).nodes[NODE].state


@pytest.mark.parametrize(("row", "kinds"), NODE_MOVES.items(), ids=lambda value: "-".join(value))
def test_every_row_is_a_move_that_its_events_make(row: tuple[NodeState, NodeState], kinds: tuple[str, ...]) -> None:
    """RUN-2: the table holds nothing that no event does."""
    state, to = row
    for kind in kinds:
        assert after(run_with(state, kind), draft_of(kind, to)) is to


def test_what_the_table_does_not_hold_is_not_committed() -> None:
    """RUN-2: an event of a node moves it along the table, leaves it where it is, or is refused."""
    refused = 0
    for state in NodeState:
        for kind in NODE_EVENTS:
            try:
                to = after(run_with(state), draft_of(kind, NodeState.PENDING))
            except IllegalMove:
                refused += 1
            else:
                assert to is state or kind in NODE_MOVES[state, to]
    assert refused > len(NodeState)
    with pytest.raises(IllegalMove, match="succeeded -> failed by node_failed"):
        after(run_with(NodeState.SUCCEEDED), draft_of("node_failed", NodeState.FAILED))


def test_every_state_is_reached_and_left_and_has_one_rule() -> None:
    """RUN-2, RUN-6: no state is a trap or a rumour; whatever a crash leaves behind has exactly one way on, or ended."""
    assert {to for _, to in NODE_MOVES} | {NodeState.PENDING} == set(NodeState) == {state for state, _ in NODE_MOVES}
    assert RECOVERY.keys() == set(NodeState) - ENDED_NODES
    back = {kind for (state, _), kinds in NODE_MOVES.items() if state in ENDED_NODES for kind in kinds}
    assert back == {REDRIVEN, "node_stale", "compensation_started", "node_ready"}


def test_the_guide_shows_the_tables_in_force() -> None:
    """RUN-2, RUN-6: `python -m tests.unit.runs.guide` redraws diagram and rules."""
    text = GUIDE.read_text()
    assert text == redrawn(text)
    assert diagram() in text
    assert recovery() in text


async def test_what_ended_while_it_lacked_money_stays_ended() -> None:
    """RUN-8, COST-10: the end of a question about money wakes whoever waits for some, and nobody who was cancelled."""
    home = house()
    dear = {"id": "film", "kind": "generate", "model": "film", "input": {"prompt": "x"}}
    document = production(dear, budget={"currency": "CNY", "cost": "0.50"})
    run = await home.carry(await home.produce(document))
    assert run.nodes["film"].refused
    await cancel_run(home.desk, "a", run.id)
    run = await home.carry(run)
    assert run.nodes["film"].state is NodeState.CANCELLED
    assert home.routing.withdrawn == []
    kinds = await home.kinds(run)
    assert kinds[-1] == "run_cancelled"
    assert kinds.count("node_cancelled") == 1
    await home.rebuilds(run)


async def test_money_wakes_who_waits_for_it() -> None:
    """COST-10, RUN-2: a raised limit leads from the question back to the intent on record, by the event that tells."""
    home = house()
    run = await home.carry(await home.produce(episode(budget={"currency": "CNY", "cost": "0.50"})))
    run = await home.decide(run, "approve")
    asked = [node.id for node in run.nodes.values() if node.refused]
    assert asked
    run = await home.decide(run, "raise_budget", budget={"currency": "CNY", "amount": "100.00"})
    assert not any(run.nodes[name].refused for name in asked)
    assert "budget_raised" in await home.kinds(run)
