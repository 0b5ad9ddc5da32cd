"""What a person's decision on a question makes of the Run (HUMAN-2). Pure: one function for each kind of question."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from libs.kernel.canonical import plain
from services.runs.domain import commands, facts
from services.runs.domain.inputs import subject
from services.runs.domain.plan import Plan
from services.runs.domain.run import Artifact, Decision, Draft, Failure, Node, NodeState, Question, Run
from services.runs.domain.starting import failed

Drafts = tuple[Draft, ...]
REJECTED = "rejected_by_review"
GOOD = frozenset({Decision.APPROVE, Decision.WAIVE})
MADE_AGAIN = frozenset({Decision.CHANGE_INPUT, Decision.REROUTE})


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision with what was said. `node` is the one that is made again, where a question is about several."""

    decision: Decision
    who: str
    comment: str = ""
    node: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    supply: str = ""
    budget: Mapping[str, str] | None = None


def complaint(asked: Question, verdict: Verdict, run: Run) -> tuple[str, str] | None:
    """(field, what is wrong with it), or None for a decision that can be carried out."""
    if verdict.decision not in asked.decisions:
        possible = ", ".join(asked.decisions)
        return "/decision", f"{verdict.decision} is not possible for a {asked.kind} review; possible: {possible}"
    if verdict.decision is Decision.CHANGE_INPUT and not verdict.input:
        return "/input", "change_input needs the fields that change"
    if verdict.decision is Decision.REROUTE and not verdict.supply:
        return "/supply", "reroute needs the supply that is to make it"
    if verdict.decision is Decision.RAISE_BUDGET and not verdict.budget:
        return "/budget", "raise_budget needs the new limit, as {currency, amount}"
    if verdict.decision is Decision.RAISE_BUDGET and Decimal((verdict.budget or {}).get("amount", "0")) <= 0:
        return "/budget/amount", "must be above 0; 0 would be no limit at all"
    if verdict.decision in MADE_AGAIN:
        return _target_complaint(asked, verdict, run)
    return None


def _target_complaint(asked: Question, verdict: Verdict, run: Run) -> tuple[str, str] | None:
    if verdict.node and verdict.node not in run.nodes:
        return "/input/node", f"there is no node {verdict.node!r} in this run"
    targets = _targets(asked, verdict, run)
    if len(targets) != 1 and not verdict.node and asked.kind == "gate":
        able = ", ".join(targets[:10]) or "none"
        return "/input/node", f"name the node that is to be made again; this review is about {able}"
    for target in targets:
        if reason := commands.why_not_redriven(run, run.nodes[target]):
            return "/input/node", reason
    return None if targets else ("/input/node", "nothing that this review is about can be made again")


def _targets(asked: Question, verdict: Verdict, run: Run) -> list[str]:
    """The nodes that are made again: the one named, or all generating ones that the question is about."""
    if verdict.node:
        return [verdict.node]
    about = (run.nodes[name] for name in (asked.node, *asked.subjects))
    flat = [name for node in about for name in (node.items or (node.id,))]
    return [name for name in dict.fromkeys(flat) if run.nodes[name].kind == "generate"]


def decided(plan: Plan, run: Run, asked: Question, verdict: Verdict) -> Drafts:
    """The events of a decision that has no `complaint`."""
    node = run.nodes[asked.node]
    if asked.kind == "gate":
        return _gate(plan, run, node, asked, verdict)
    told = Draft("review_decided", {"node": node.id, **_said(asked, verdict)})
    if verdict.decision in MADE_AGAIN:
        noted = (_anomaly(node, asked, verdict),) if asked.kind == "charge_doubt" else ()
        return (told, *noted, *_made_again(plan, run, asked, verdict))
    return (told, *_BY_KIND[asked.kind](plan, run, node, asked, verdict))


def _said(asked: Question, verdict: Verdict) -> dict[str, Any]:
    said: dict[str, Any] = {
        "review_id": asked.id,
        "kind": asked.kind,
        "decision": verdict.decision.value,
        "who": verdict.who,
        "comment": verdict.comment,
        "subject_hash": asked.subject_hash,
    }
    if verdict.input:
        said["input"] = dict(verdict.input)
    if verdict.supply:
        said["supply"] = verdict.supply
    if verdict.budget:
        said["budget"] = dict(verdict.budget)
    return said


def _made_again(plan: Plan, run: Run, asked: Question, verdict: Verdict) -> Drafts:
    reason = f"{verdict.decision} by {verdict.who}: {verdict.comment}".rstrip(": ")
    without = _without(run, asked)
    return commands.redriven(
        plan,
        without,
        _targets(asked, verdict, run),
        reason,
        who=verdict.who,
        changes=verdict.input,
        supply=verdict.supply,
    )


def _without(run: Run, asked: Question) -> Run:
    """The Run without the question that is being answered."""
    return replace(run, questions={key: value for key, value in run.questions.items() if key != asked.id})


def _rejected(node: Node, verdict: Verdict) -> Draft:
    said = verdict.comment or "no remedy was named"
    return failed(node, Failure("content", "request", False, REJECTED, f"{verdict.decision} by {verdict.who}: {said}"))


def _gate(plan: Plan, run: Run, node: Node, asked: Question, verdict: Verdict) -> Drafts:
    artifacts: tuple[Artifact, ...] = subject(plan, run, node)[1] if verdict.decision in GOOD else ()
    told = Draft("gate_decided", {"node": node.id, **_said(asked, verdict), "artifacts": plain(artifacts)})
    if verdict.decision in GOOD:
        return (told,)
    if verdict.decision in MADE_AGAIN:
        waits = {"node": node.id, "state": "pending", "reason": f"dependency: {verdict.decision} by {verdict.who}"}
        return (told, Draft("node_waiting", waits), *_made_again(plan, run, asked, verdict))
    undone = [
        name
        for name in plan.spec(node.id).needs
        if plan.spec(name).compensation and run.nodes[name].state is NodeState.SUCCEEDED
    ]
    cause = f"{verdict.decision} by {verdict.who}: {verdict.comment}"
    drafts = [draft for name in undone for draft in commands.compensated(plan, run, name, cause, verdict.who)]
    dead = [_rejected(run.nodes[name], verdict) for name in undone]
    return (told, *drafts, *dead, _rejected(node, verdict))


def _check(plan: Plan, run: Run, node: Node, asked: Question, verdict: Verdict) -> Drafts:
    if verdict.decision is Decision.WAIVE:
        told = {"node": node.id, "artifacts": [], "input_hash": node.input_hash, "waived_by": verdict.who}
        return (Draft("node_completed", told),)
    return (_rejected(node, verdict),)


def _canary(plan: Plan, run: Run, node: Node, asked: Question, verdict: Verdict) -> Drafts:
    shot_class = asked.root_cause.removeprefix(f"canary:{node.id}:")
    if verdict.decision in GOOD:
        told = {"node": node.id, "shot_class": shot_class, "canaries": list(asked.subjects), "by": verdict.who}
        return (Draft("canary_released", told),)
    waiting = [name for name in node.items if run.nodes[name].state in (NodeState.PENDING, NodeState.STALE)]
    why = f"{verdict.decision} by {verdict.who}"
    return (
        *(Draft("node_cancelled", {"node": name, "reason": why}) for name in waiting),
        _rejected(node, verdict),
    )


def _budget(plan: Plan, run: Run, node: Node, asked: Question, verdict: Verdict) -> Drafts:
    level = asked.root_cause.removeprefix("budget:")
    if verdict.decision in (Decision.RAISE_BUDGET, Decision.APPROVE):  # or it was raised elsewhere
        return (Draft("budget_raised", {"budget_id": level, "limit": verdict.budget, "who": verdict.who}),)
    waiting = [each for each in run.nodes.values() if each.refused]
    error = Failure("request", "request", False, "budget_exhausted", asked.cause)
    return tuple(failed(each, error, "budget") for each in waiting)


def _unpriced(plan: Plan, run: Run, node: Node, asked: Question, verdict: Verdict) -> Drafts:
    if verdict.decision is Decision.APPROVE:  # a price is there by now
        return (Draft("budget_raised", {"budget_id": "", "limit": None, "who": verdict.who}),)
    about = asked.root_cause.removeprefix("unpriced:")
    waiting = [each for each in run.nodes.values() if each.refused and (each.parent or each.id) == about]
    error = Failure("request", "request", False, "budget_exhausted", asked.cause)
    return tuple(failed(each, error, "budget") for each in waiting)


def _anomaly(node: Node, asked: Question, verdict: Verdict) -> Draft:
    """A charge that may have doubled is on record, whatever was decided about it (RUN-6)."""
    told = {"node": node.id, "cause": asked.cause, "who": verdict.who, "amount": facts.money_json(node.cost)}
    return Draft("cost_anomaly", told)


def _doubt(plan: Plan, run: Run, node: Node, asked: Question, verdict: Verdict) -> Drafts:
    noted = _anomaly(node, asked, verdict)
    if verdict.decision is Decision.APPROVE:
        waits = {"node": node.id, "state": "pending", "reason": "", "retry": "a person accepts a second charge"}
        return (noted, Draft("node_waiting", waits))
    last = node.failures[-1] if node.failures else Failure("unknown", "attempt", False, "submission_unresolved", "")
    return (noted, failed(node, last, "operations"))


_BY_KIND: Mapping[str, Callable[[Plan, Run, Node, Question, Verdict], Drafts]] = {
    "check": _check,
    "canary": _canary,
    "budget": _budget,
    "unpriced": _unpriced,
    "charge_doubt": _doubt,
}
