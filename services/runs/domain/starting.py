"""The beginning of a node: its intent on record, with everything that it will be submitted with (RUN-4, STEER-2)."""

from dataclasses import replace
from datetime import datetime

from libs.kernel.canonical import digest, plain
from services.runs.domain import maps
from services.runs.domain.asking import question
from services.runs.domain.belongings import not_its_own
from services.runs.domain.expressions import Unresolved
from services.runs.domain.history import applied
from services.runs.domain.inputs import current_hash, namespace, prepared, subject, subject_hash
from services.runs.domain.minutes import asked_for
from services.runs.domain.plan import Kind, Plan, Spec, ValueClass
from services.runs.domain.run import Draft, Failure, Node, NodeState, Run

INVALID = "validation_failed"
ID_LENGTH = 26


def begun(plan: Plan, run: Run, node: Node, now: datetime) -> tuple[Draft, ...]:
    """The events with which a node that may begin begins."""
    spec = plan.spec(node.id)
    try:
        if spec.kind is Kind.GENERATE:
            return _generate(plan, run, node, now)
        if spec.kind is Kind.MAP:
            return maps.expanded(plan, run, node, current_hash(plan, run, node))
        if spec.kind is Kind.GATE:
            return _gate(plan, run, node, spec, now)
        return (Draft("node_ready", {"node": node.id, "input_hash": subject_hash(plan, run, node, spec)}),)
    except Unresolved as missing:
        return (failed(node, Failure.of(INVALID, str(missing))),)


def _generate(plan: Plan, run: Run, node: Node, now: datetime) -> tuple[Draft, ...]:
    steered = applied(run, list(_consumed(plan, run, node, "", now)), now)
    asked = replace(steered.nodes[node.id], fewer=False)
    value, input_hash = whole = prepared(plan, steered, asked)
    if strange := not_its_own(steered, value):
        reason = f"the input names artifact {strange}, which the run was not given: write the material as an object"
        return (failed(node, Failure("request", "request", False, INVALID, reason)),)
    if run.soft and plan.spec(node.id).worth is not ValueClass.HERO:  # past a soft limit fewer variants do (COST-10)
        value, input_hash = prepared(plan, steered, replace(asked, fewer=True))
    task_id = task_id_of(run, node, input_hash)
    drafts = list(_consumed(plan, run, node, task_id, now))
    for known in (whole[1], input_hash):
        if known in node.results:
            told = {"node": node.id, "input_hash": known, "reused": True, "fewer": known != whole[1]}
            artifacts = [artifact.sha256 for artifact in node.results[known].artifacts]
            return (*drafts, Draft("node_completed", {**told, "artifacts": artifacts}))
    told = {
        "node": node.id,
        "try": node.tries + 1,
        "task_id": task_id,
        "input_hash": input_hash,
        "input": value,
        "steered": len(steered.steered.get(namespace(node), ())),
        **({"fewer": True} if input_hash != whole[1] else {}),
    }
    return (*drafts, Draft("node_ready", told))


def task_id_of(run: Run, node: Node, input_hash: str) -> str:
    """The Task of the next try with that input. It follows from what is on record, so that a Run whose database was put
    back asks for the same work by the same name, and the work that a provider has of it is found."""
    return digest([run.id, node.id, len(node.task_ids), input_hash])[:ID_LENGTH]


def _consumed(plan: Plan, run: Run, node: Node, task_id: str, now: datetime) -> list[Draft]:
    """Every pending input that the node declares, in the order in which they were accepted."""
    kinds = plan.spec(node.id).consumes_steering
    return [
        Draft(
            "run.steer.consumed",
            {
                "steering_event_id": taken.id,
                **({"source_event_id": taken.source_event_id} if taken.source_event_id else {}),
                "sequence": taken.sequence,
                "kind": taken.kind,
                "node": node.id,
                "namespace": namespace(node),
                "task_id": task_id,
                "queue_latency_seconds": round((now - taken.accepted_at).total_seconds(), 6),
            },
        )
        for taken in run.steering
        if taken.kind in kinds
    ]


def _gate(plan: Plan, run: Run, node: Node, spec: Spec, now: datetime) -> tuple[Draft, ...]:
    declared, artifacts = subject(plan, run, node)
    bound = subject_hash(plan, run, node, spec)
    before = node.input_hash
    cause = "everything that it needs is there"
    if before and before != bound:
        cause = f"what was decided had the hash {before[:12]}; it has changed, and a decision binds to what was seen"
    about = [run.nodes[need] for need in spec.needs]
    asked = question(
        plan, run, node, "gate", now,
        asks=f"May {node.id} be passed: is what stands before it good?",
        cause=cause,
        subject_hash=bound,
        artifacts=artifacts,
        about=[node, *about],
        subject=None if spec.subject is None else declared,
    )  # fmt: skip
    return asked_for(plan, asked)


def failed(node: Node, error: Failure, desk: str = "", cost: object = None) -> Draft:
    """The end of a node without a result: a case file from now on (DLQ-1).

    Of a map too: only one that stopped because of its items is told by their files.
    """
    told = {"node": node.id, "error": plain(error), "try": node.tries}
    if cost is not None:
        told["cost"] = cost
    if node.state is not NodeState.CANCELLED:
        told["dead_letter"] = {"desk": desk or desk_for(error)}
    return Draft("node_failed", told)


def desk_for(error: Failure) -> str:
    """Who should look at it."""
    if error.code in ("budget_exhausted", "cost_limit_exceeded"):
        return "budget"
    return "content" if error.category in ("content", "request") else "operations"
