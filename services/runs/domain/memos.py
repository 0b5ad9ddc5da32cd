"""Results that an equal node of another Run may take: opt-in on both sides (RUN-5). Pure.

Laws of this file:
- a memo is made in the transaction of the event that completes its node, and only by what was really made;
- what was taken back (COMP-1) is a memo no more, whoever made it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from libs.kernel.canonical import plain
from services.runs.domain import event_data
from services.runs.domain.run import Draft, Node, NodeState, Result, Run


@dataclass(frozen=True, slots=True)
class Memo:
    """What a node of a tenant's Run gave for an input; the newest one of each input hash is kept."""

    tenant: str
    input_hash: str
    run_id: str
    node: str
    result: Result


def memo_changes(before: Run, after: Run, drafts: Sequence[Draft]) -> tuple[tuple[Memo, ...], tuple[str, ...]]:
    """(results that others may take from now on, in the order of their hashes; input hashes that are forgotten)."""
    made: dict[str, Memo] = {}
    forgotten: dict[str, None] = {}
    for draft in drafts:
        data = draft.data
        if draft.kind == "node_completed" and data.get("memo"):
            node, input_hash = after.nodes[data["node"]], data["input_hash"]
            if (result := node.results.get(input_hash)) is not None:
                made[input_hash] = Memo(after.tenant, input_hash, after.id, node.id, result)
        elif draft.kind == "compensation_started":
            forgotten[before.nodes[data["node"]].input_hash] = None
            made.pop(before.nodes[data["node"]].input_hash, None)
    return tuple(made[name] for name in sorted(made)), tuple(sorted(forgotten))


def reused(node: Node, memo: Memo) -> tuple[Draft, ...]:
    """The node ends with what another Run's node gave, before anything was held or handed over for it."""
    if node.state is not NodeState.LEASED or node.hold is not None or node.input_hash != memo.input_hash:
        return ()
    told = {"node": node.id, "input_hash": node.input_hash, "reused_from": {"run": memo.run_id, "node": memo.node}}
    artifacts = {"artifact_list": plain(memo.result.artifacts)}
    return (Draft("node_completed", {**told, **event_data.result_json(memo.result), **artifacts}),)
