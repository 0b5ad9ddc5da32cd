"""The table of a Node's states. What is committed obeys it, and the diagram in the guide is drawn from it.

Laws of this file:
- a Node changes its state only by an event that the table holds for that pair; anything else is a bug, and is refused
  before it is committed. What is on record already is read as it stands;
- each state that is not an end has exactly one way on (`RECOVERY`), whoever looks at it, and however often (RUN-6);
- staying where it is is no move.
"""

from collections.abc import Mapping
from types import MappingProxyType

from services.runs.domain.run import NodeState, Run

MONEY_AGAIN = (
    "budget_raised", "budget_not_raised", "budget_settled", "budget_freed", "review_decided",
    "review_minutes_settled", "review_withdrawn",
)  # fmt: skip
"""Something came free, or nobody is asked for it any more: whoever was refused asks again."""
BEGUN = ("node_ready", "review_due")
"""Its intent is on record; of a gate, that minutes are to be held before a person is asked."""
REDRIVEN = "run_redriven"
LISTED_ANEW = "node_ready"
"""Of a map: items that its list holds no longer end with it."""


def _rows() -> dict[tuple[NodeState, NodeState], tuple[str, ...]]:
    pending, leased, running, asked = (
        NodeState.PENDING, NodeState.LEASED, NodeState.RUNNING, NodeState.WAITING_HUMAN,
    )  # fmt: skip
    succeeded, failed, cancelled = NodeState.SUCCEEDED, NodeState.FAILED, NodeState.CANCELLED
    stale, compensating = NodeState.STALE, NodeState.COMPENSATING
    return {
        (pending, leased): BEGUN,
        (pending, asked): ("gate_opened",),
        (pending, succeeded): ("node_completed",),
        (pending, failed): ("node_failed",),
        (pending, cancelled): ("node_cancelled",),
        (stale, leased): BEGUN,
        (stale, asked): ("gate_opened",),
        (stale, succeeded): ("node_completed",),
        (stale, failed): ("node_failed",),
        (stale, cancelled): ("node_cancelled",),
        (stale, pending): (REDRIVEN,),
        (stale, running): (REDRIVEN,),
        (leased, running): ("node_started",),
        (leased, asked): ("gate_opened", "node_waiting"),
        (leased, pending): ("node_waiting", REDRIVEN),
        (leased, succeeded): ("node_completed",),
        (leased, failed): ("node_failed",),
        (leased, cancelled): ("node_cancelled",),
        (running, pending): ("node_waiting",),
        (running, asked): ("node_waiting",),
        (running, succeeded): ("node_completed",),
        (running, failed): ("node_failed",),
        (running, cancelled): ("node_cancelled",),
        (asked, leased): MONEY_AGAIN,
        (asked, pending): ("node_waiting", REDRIVEN),
        (asked, succeeded): ("gate_decided", "node_completed"),
        (asked, failed): ("node_failed",),
        (asked, cancelled): ("node_cancelled",),
        (compensating, pending): ("compensation_finished",),
        (succeeded, stale): ("node_stale",),
        (succeeded, compensating): ("compensation_started",),
        (succeeded, cancelled): (LISTED_ANEW,),
        (succeeded, pending): (REDRIVEN,),
        (succeeded, running): (REDRIVEN,),
        (failed, stale): ("node_stale",),
        (failed, cancelled): (LISTED_ANEW,),
        (failed, pending): (REDRIVEN,),
        (failed, running): (REDRIVEN,),
        (cancelled, stale): ("node_stale",),
        (cancelled, pending): (REDRIVEN,),
        (cancelled, running): (REDRIVEN,),
    }


NODE_MOVES: Mapping[tuple[NodeState, NodeState], tuple[str, ...]] = MappingProxyType(_rows())
"""(from, to) -> the kinds of events that lead there."""

RECOVERY: Mapping[NodeState, str] = {
    NodeState.PENDING: "begins when what it waits for is there, or is a case file when that never comes",
    NodeState.STALE: "begins again like a pending one",
    NodeState.LEASED: "its Hold is asked for; then its Task is handed over under the recorded id, or a person is asked",
    NodeState.RUNNING: "its Task is followed by its id; a map looks at its items",
    NodeState.WAITING_HUMAN: "its question is on record, with a deadline that hands it on",
    NodeState.COMPENSATING: "never found: a compensation begins and ends in one commit, so nothing can starve it",
}
"""The one rule for each state that is not an end: after a crash nothing else is needed (RUN-6)."""


class IllegalMove(ValueError):
    """A change of a Node's state that the table does not hold."""


def refuse_other_moves(before: Run, after: Run, kind: str) -> None:
    """IllegalMove if an event of that kind moved a Node as the table does not allow."""
    if after.nodes is before.nodes:
        return
    # New nodes come last and begin anywhere.
    for old, new in zip(before.nodes.values(), after.nodes.values(), strict=False):
        if old.state is not new.state and kind not in NODE_MOVES.get((old.state, new.state), ()):
            raise IllegalMove(f"node {old.id} of run {before.id}: {old.state} -> {new.state} by {kind}")


def diagram() -> str:
    """The table as a Mermaid state diagram. Redrives stand in notes: they lead from nearly everywhere."""
    lines = ["stateDiagram-v2", "    [*] --> pending"]
    for (state, to), kinds in NODE_MOVES.items():
        if named := [kind for kind in kinds if kind != REDRIVEN]:
            lines.append(f"    {state} --> {to}: {', '.join(named)}")
    for to, who in ((NodeState.PENDING, "the node"), (NodeState.RUNNING, "its map")):
        sources = [state for (state, end), kinds in NODE_MOVES.items() if end is to and REDRIVEN in kinds]
        lines += [f"    note left of {to}", f"        {REDRIVEN} ({who}), from:", f"        {', '.join(sources)}"]
        lines.append("    end note")
    return "\n".join(lines) + "\n"


def recovery() -> str:
    """What carries each state on, as a table of the guide."""
    rows = [f"| `{state}` | {rule} |" for state, rule in RECOVERY.items()]
    return "\n".join(["| state | after a crash, and always |", "|---|---|", *rows]) + "\n"
