"""What each event makes of its Run. The state of a Run is nothing but the fold of its events (EVENT-3).

Laws of this file:
- `evolve` is total: an event of a kind that is not known here changes nothing but the count;
- nothing is decided here: an event tells what was decided, with all that the state after it needs;
- data is plain JSON, as it was committed; times of changes are the event's own.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from libs.kernel.canonical import digest, plain
from services.runs.domain import amounts, event_data
from services.runs.domain.expressions import references
from services.runs.domain.merging import layered
from services.runs.domain.minutes import over
from services.runs.domain.moves import refuse_other_moves
from services.runs.domain.nodes_history import NODE_EVENTS
from services.runs.domain.reading.links import EXPRESSED
from services.runs.domain.run import (
    TERMINAL_KINDS,
    Draft,
    Due,
    Event,
    Node,
    NodeState,
    Order,
    Raising,
    Reserved,
    Result,
    Run,
    RunState,
    Steered,
    Steering,
    Usage,
)

Data = Mapping[str, Any]
Step = Callable[[Run, Data, datetime], Run]
COMMANDS_KEPT = 1_000
"""Steering counts among them: as many as may wait at once."""
DECISIONS_KEPT = 10


def evolve(run: Run, kind: str, data: Data, at: datetime) -> Run:
    """The Run after that event."""
    if kind in NODE_EVENTS:
        node = run.nodes[data["node"]]
        after = NODE_EVENTS[kind](node, data, at)
        run = replace(run, nodes={**run.nodes, node.id: after})
        if after.cost != node.cost:
            run = replace(run, usage=replace(run.usage, cost=amounts.moved(run.usage.cost, node.cost, after.cost)))
    step = _RUN_EVENTS.get(kind)
    return step(run, data, at) if step is not None else run


def applied(run: Run, drafts: Sequence[Draft], now: datetime) -> Run:
    """The Run after events that are about to be committed at `now`. IllegalMove for what no table of states holds."""
    for draft in drafts:
        after = evolve(run, draft.kind, plain(draft.data), now)
        refuse_other_moves(run, after, draft.kind)
        run = after
    return run


def rebuilt(events: Iterable[Event], snapshot: Run | None = None) -> Run:
    """The Run that its whole history tells, or what a snapshot and the events after it tell.

    ValueError if they do not begin with the first event, or with the one after the snapshot, or have a gap.
    """
    run = snapshot
    for event in events:
        if event.sequence != (run.last_sequence if run else 0) + 1:
            raise ValueError(f"event {event.sequence} follows {run.last_sequence if run else 0}")
        if run is None:
            run = born(event.run_id, event.data, event.created_at)
        else:
            run = evolve(run, event.kind, event.data, event.created_at)
        run = replace(run, last_sequence=event.sequence)
    if run is None:
        raise ValueError("a Run has at least one event")
    return run


def state_hash(run: Run) -> str:
    """The SHA-256 of all that a Run is, but for the counter that only guards its row (SLO-3)."""
    names = (name for name in run.__slots__ if name != "revision")
    return digest({name: plain(getattr(run, name)) for name in names})


def born(run_id: str, data: Data, at: datetime) -> Run:
    """The Run of its first event, `run_created`."""
    order = data.get("order") or {}
    return Run(
        id=run_id,
        tenant=data["tenant"],
        state=RunState.PENDING,
        order=Order(**{**order, "deadline": event_data.time(order.get("deadline"))}) if order else Order("", {}),
        nodes={
            item["id"]: Node(item["id"], item["kind"], task_id=item.get("task_id", "")) for item in data["node_list"]
        },
        created_at=at,
        labels=data["labels"],
        production=data.get("production"),
        budget_id=data.get("budget_id", ""),
        budget_parent=data.get("budget_parent", ""),
    )


def _started(run: Run, _data: Data, at: datetime) -> Run:
    return replace(run, state=RunState.RUNNING, started_at=at)


def _paused(run: Run, data: Data, _at: datetime) -> Run:
    return replace(_commanded(run, data), state=RunState.PAUSED)


def _resumed(run: Run, data: Data, _at: datetime) -> Run:
    state = RunState.RUNNING if run.started_at is not None else RunState.PENDING
    return replace(_commanded(run, data), state=state)


def _cancel_requested(run: Run, data: Data, _at: datetime) -> Run:
    return replace(_commanded(run, data), cancel_requested=True)


def _commanded(run: Run, data: Data) -> Run:
    command = data.get("command_id")
    return replace(run, commands=(*run.commands, command)[-COMMANDS_KEPT:]) if command else run


def _attempt_started(run: Run, data: Data, _at: datetime) -> Run:
    return replace(run, usage=Usage(run.usage.cost, run.usage.attempts + 1, data["supply"]))


def _items_ready(run: Run, data: Data, _at: datetime) -> Run:
    """A map became its items: new ones are added, those that are gone end, the others keep what they have."""
    if "items" not in data:
        return run
    nodes = dict(run.nodes)
    parent = data["node"]
    for item in data["items"]:
        node_id = f"{parent}/{item['id']}"
        known = nodes.get(node_id) or Node(node_id, data["item_kind"], parent=parent)
        nodes[node_id] = replace(known, item=item["item"], shot_class=item["shot_class"])
    wanted = {f"{parent}/{item['id']}" for item in data["items"]}
    for node_id, node in nodes.items():
        if node.parent == parent and node_id not in wanted:
            nodes[node_id] = replace(node, state=NodeState.CANCELLED, waiting_reason="")
    return replace(run, nodes=nodes)


def _soft(run: Run, data: Data, _at: datetime) -> Run:
    return replace(run, soft=True, soft_at=tuple(dict.fromkeys((*run.soft_at, data["budget_id"]))))


def _raising(run: Run, data: Data, _at: datetime) -> Run:
    asked = Raising(**{name: data[name] for name in Raising.__slots__})
    return replace(run, raising=(*run.raising, asked))


def _eased(run: Run, data: Data, _at: datetime) -> Run:
    return replace(_raised(_money_again(run), data), soft=False)


def _not_raised(run: Run, data: Data, _at: datetime) -> Run:
    return _raised(_money_again(run), data)


def _raised(run: Run, data: Data) -> Run:
    left = tuple(asked for asked in run.raising if asked.review_id != data.get("review_id"))
    return replace(run, raising=left)


def _settled(run: Run, _data: Data, _at: datetime) -> Run:
    return _money_again(run)


def _freed(run: Run, data: Data, _at: datetime) -> Run:
    """A level has room again for those whom it names."""
    return _money_again(run, frozenset((*data["nodes"], *data["reviews"])))


def _money_again(run: Run, only: Collection[str] | None = None) -> Run:
    """Something came free: whoever was refused, or those of them alone, asks again, on the intent that is on record."""
    asked = {
        node.id: replace(node, state=NodeState.LEASED, refused=False, refused_by="", lacks={}, waiting_reason="")
        for node in run.nodes.values()
        if node.refused and (only is None or node.id in only)
    }
    due = {
        name: replace(due, refused_by="", lacks={})
        for name, due in run.due.items()
        if due.refused_by and (only is None or name in only)
    }
    if due:
        run = replace(run, due={**run.due, **due})
    return replace(run, nodes={**run.nodes, **asked}) if asked else run


def _due(run: Run, data: Data, _at: datetime) -> Run:
    told = event_data.question(data["review"])
    return replace(run, due={**run.due, told.id: Due(told, data["minutes"])})


def _due_refused(run: Run, data: Data, _at: datetime) -> Run:
    due = run.due[data["review_id"]]
    refused = replace(due, refused_by=data["root_cause"], lacks=data.get("lacks") or {})
    return replace(run, due={**run.due, due.question.id: refused})


def _minutes_held(run: Run, data: Data, _at: datetime) -> Run:
    held = Reserved(data["hold_id"], data["node"], data["minutes"])
    return replace(run, reserved={**run.reserved, data["review_id"]: held})


def _minutes_settled(run: Run, data: Data, _at: datetime) -> Run:
    left = {name: held for name, held in run.reserved.items() if name != data["review_id"]}
    return _money_again(replace(run, reserved=left, review_minutes=run.review_minutes + data["minutes"]))


def _asked(run: Run, data: Data, _at: datetime) -> Run:
    told = event_data.question(data["review"])
    due = {name: due for name, due in run.due.items() if name != told.id}
    return replace(run, due=due, questions={**run.questions, told.id: told})


def _decided(run: Run, data: Data, at: datetime) -> Run:
    if data["review_id"] in run.questions:
        run = replace(run, decided_at=(*run.decided_at, at)[-DECISIONS_KEPT:])
    return _answered(run, data, at)


def _answered(run: Run, data: Data, at: datetime) -> Run:
    """Whoever was refused asks again: nothing waits for an answer that nobody is asked for."""
    asked = run.questions.get(data["review_id"])
    run = over(run, data["review_id"], at, decided="decision" in data)
    return _money_again(run) if asked is not None and asked.kind in ("budget", "unpriced") else run


def _claimed(run: Run, data: Data, at: datetime) -> Run:
    return _with_question(run, data, assignee=data["assignee"], claimed_at=at)


def _escalated(run: Run, data: Data, _at: datetime) -> Run:
    deadline = event_data.time(data["deadline"])
    told = {"assignee": data["assignee"], "escalations": data["escalations"], "deadline": deadline}
    return _with_question(run, data, **told, claimed_at=None)


def _with_question(run: Run, data: Data, **changes: Any) -> Run:
    known = run.questions[data["review_id"]]
    return replace(run, questions={**run.questions, known.id: replace(known, **changes)})


def _pressed(run: Run, data: Data, _at: datetime) -> Run:
    return replace(run, backpressure=data["reason"])


def _relieved(run: Run, _data: Data, _at: datetime) -> Run:
    return replace(run, backpressure="")


def _steer_accepted(run: Run, data: Data, at: datetime) -> Run:
    """A migrated input takes the place of the one that it was before (STEER-4)."""
    source = data.get("source_event_id") or ""
    accepted = event_data.time(data.get("accepted_at")) or at
    told = Steering(data["steering_event_id"], data["sequence"], data["kind"], data["data"], accepted, source)
    kept = tuple(item for item in run.steering if item.sequence != told.sequence)
    ordered = sorted((*kept, told), key=lambda item: item.sequence)
    count = max(run.steering_count, told.sequence)
    return replace(_commanded(run, data), steering=tuple(ordered), steering_count=count)


def _steer_consumed(run: Run, data: Data, _at: datetime) -> Run:
    taken = next(item for item in run.steering if item.id == data["steering_event_id"])
    before = run.steered.get(data["namespace"], ())
    return replace(
        run,
        steering=tuple(item for item in run.steering if item.id != taken.id),
        steered={**run.steered, data["namespace"]: (*before, Steered(taken.kind, taken.data))},
    )


def _steer_superseded(run: Run, data: Data, _at: datetime) -> Run:
    return replace(run, steering=tuple(item for item in run.steering if item.id != data["steering_event_id"]))


def _redriven(run: Run, data: Data, at: datetime) -> Run:
    """The named nodes begin again with their history, and the Run with them."""
    nodes = dict(run.nodes)
    for node_id in data["nodes"]:
        node = nodes[node_id]
        failures = (*node.failures, node.failure) if node.failure else node.failures
        again = replace(
            node,
            state=NodeState.PENDING,
            waiting_reason="",
            failure=None,
            refused=False,
            refused_by="",
            lacks={},
            failures=failures,
            forgiven=len(failures),
            allowance=node.attempts_made,
            began_at=None,
            retry_at=None,
            finished_at=None,
        )
        nodes[node_id] = again
    for node_id in data.get("resumed", ()):
        nodes[node_id] = replace(nodes[node_id], state=NodeState.RUNNING, failure=None, finished_at=None)
    for node_id in data.get("changed", ()):
        node = nodes[node_id]
        changes = layered(node.changes, data.get("changes") or {})
        nodes[node_id] = replace(node, changes=changes, supply=data.get("supply") or node.supply)
    state = run.state if run.state in (RunState.RUNNING, RunState.PAUSED) else RunState.RUNNING
    run = replace(_commanded(run, data), nodes=nodes, state=state, failure=None, result=None, finished_at=None)
    run = replace(run, redrives=run.redrives + 1)
    return replace(run, started_at=run.started_at or at, cancel_requested=False)


def _ended(state: RunState) -> Step:
    def end(run: Run, data: Data, at: datetime) -> Run:
        result = run_result(run) if state is RunState.SUCCEEDED else None
        failure = event_data.failure(data.get("error"))
        usage = replace(run.usage, cost=event_data.money(data.get("cost")) or run.usage.cost)
        return replace(run, state=state, failure=failure, result=result, usage=usage, finished_at=at)

    return end


def run_result(run: Run) -> Result:
    """What a Run that succeeded gave: its node's result, or what the last nodes of a production gave. A check gives
    nothing of its own: what nothing but checks comes after is last."""
    if run.production is None:
        node = run.node
        return node.results.get(node.input_hash) or Result(node.artifacts)
    inner = {name for node in run.production["nodes"] if node.get("kind") != "check" for name in _named(node)}
    outer = [node for node in run.nodes.values() if not node.parent and node.id not in inner]
    last = [node for node in outer if node.artifacts and node.kind != "check"]
    output = {
        node.id: result.output for node in last if (result := node.results.get(node.input_hash)) and result.output
    }
    return Result(tuple(artifact for node in last for artifact in node.artifacts), output)


def _named(node: Data) -> set[str]:
    """The nodes that a node of a document needs: those it names, and those of its expressions."""
    parts = (node, node.get("node") or {})
    return {*(node.get("needs") or ()), *references([part.get(field) for part in parts for field in EXPRESSED])}


_RUN_EVENTS: Mapping[str, Step] = {
    "run_started": _started,
    "run_paused": _paused,
    "run_resumed": _resumed,
    "run_cancel_requested": _cancel_requested,
    "run_redriven": _redriven,
    "node_ready": _items_ready,
    "attempt_started": _attempt_started,
    "budget_soft_limit": _soft,
    "budget_raise_decided": _raising,
    "budget_raised": _eased,
    "budget_not_raised": _not_raised,
    "budget_settled": _settled,
    "budget_freed": _freed,
    "review_due": _due,
    "review_refused": _due_refused,
    "review_minutes_held": _minutes_held,
    "review_minutes_settled": _minutes_settled,
    "gate_opened": _asked,
    "gate_decided": _decided,
    "review_opened": _asked,
    "review_claimed": _claimed,
    "review_escalated": _escalated,
    "review_decided": _decided,
    "review_withdrawn": _answered,
    "backpressure_started": _pressed,
    "backpressure_ended": _relieved,
    "run.steer.accepted": _steer_accepted,
    "run.steer.consumed": _steer_consumed,
    "run.steer.superseded": _steer_superseded,
    **{kind: _ended(state) for state, kind in TERMINAL_KINDS.items()},
}
