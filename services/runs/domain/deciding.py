"""What a person's decision on a question makes of the Run (HUMAN-2). Pure: one function for each kind of question."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from libs.kernel.canonical import digest, plain
from services.runs.domain import asking, commands
from services.runs.domain.inputs import passed_on, subject
from services.runs.domain.plan import Plan
from services.runs.domain.run import Artifact, Decision, Draft, Due, Failure, Node, NodeState, Question, Run
from services.runs.domain.starting import failed
from services.runs.domain.task_view import Level

Drafts = tuple[Draft, ...]
REJECTED = "rejected_by_review"
GOOD = frozenset({Decision.APPROVE, Decision.WAIVE})
MADE_AGAIN = frozenset({Decision.CHANGE_INPUT, Decision.REROUTE})
NODE = "/input/node"
"""Where a decision names the node that it means."""


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
    """The new hard limit of money, `{currency, amount}`."""
    attempts: int = 0
    review_minutes: int = 0
    """The new hard limit, where that is what is refused."""

    @property
    def limits(self) -> Mapping[str, Any]:
        """The limits that it names, by dimension."""
        named = {"cost": self.budget, "attempts": self.attempts, "review_minutes": self.review_minutes}
        return {dimension: limit for dimension, limit in named.items() if limit}


def complaint(asked: Question, verdict: Verdict, run: Run) -> tuple[str, str] | None:
    """(field, what is wrong with it), or None for a decision that can be carried out."""
    if verdict.decision not in asked.decisions:
        possible = ", ".join(asked.decisions)
        return "/decision", f"{verdict.decision} is not possible for a {asked.kind} review; possible: {possible}"
    if verdict.decision is Decision.CHANGE_INPUT and not verdict.input:
        return "/input", "change_input needs the fields that change"
    if verdict.decision is Decision.REROUTE and not verdict.supply:
        return "/supply", "reroute needs the supply that is to make it"
    if verdict.decision is Decision.RAISE_BUDGET:
        return _raise_complaint(asked.dimension or "cost", verdict)
    if verdict.decision in MADE_AGAIN:
        return _target_complaint(asked, verdict, run)
    return None


def _raise_complaint(dimension: str, verdict: Verdict) -> tuple[str, str] | None:
    """Exactly what refused is raised: another limit would be changed without need, and let nothing go on."""
    if dimension not in verdict.limits:
        form = "{currency, amount}" if dimension == "cost" else f"{{{dimension}}}, a whole number above 0"
        return "/budget", f"raise_budget needs the new limit, as {form}"
    if others := [name for name in verdict.limits if name != dimension]:
        return f"/budget/{others[0]}", f"is not what is refused here; name {dimension} alone"
    if dimension == "cost" and Decimal((verdict.budget or {}).get("amount", "0")) <= 0:
        return "/budget/amount", "must be above 0; 0 would be no limit at all"
    return None


def limit_complaint(run: Run, asked: Question, verdict: Verdict, level: Level) -> tuple[str, str] | None:
    """As `complaint`, of a limit that the budget as it stands could not have, or that would let nothing go on.

    Another Run's question, or an operator, may have moved that budget since this one was asked: whoever decides now is
    told how it stands, so that of two grants neither takes back the other.
    """
    dimension = asked.dimension or "cost"
    field, limit = f"/budget/{dimension}", Decimal(verdict.limits[dimension] if dimension != "cost" else 0)
    if verdict.budget and dimension == "cost":
        field, limit = "/budget/amount", Decimal(verdict.budget["amount"])
        if verdict.budget["currency"] != level.currency:
            return "/budget/currency", f"must be the budget's, {level.currency}"
    used, hard = level.used.get(dimension, Decimal(0)), level.hard.get(dimension, Decimal(0))
    if limit < used:
        return field, f"must be at least {used}, which is spent and held already"
    if not hard:
        return field, "is no limit any more; approve lets what waits go on"
    if limit <= hard:
        return field, f"must be above {hard}, which is the limit by now; approve takes it as it stands"
    if limit < used + (least := _least_lacking(run, asked, dimension)):
        return field, f"must be at least {used + least}: {used} is spent and held by now, and {least} is asked for"
    if limit < (soft := level.soft.get(dimension, 0)):
        return field, f"must be at least {soft}, where the budget warns"
    return None


def _least_lacking(run: Run, asked: Question, dimension: str) -> Decimal:
    """The smallest request that waits for the answer; 0 where none was counted."""
    waiting: list[Node | Due] = [*run.nodes.values(), *run.due.values()]
    lacks = [each.lacks.get(dimension) for each in waiting if each.refused_by == asked.root_cause]
    return min((Decimal(amount) for amount in lacks if amount), default=Decimal(0))


def _target_complaint(asked: Question, verdict: Verdict, run: Run) -> tuple[str, str] | None:
    if verdict.node and verdict.node not in run.nodes:
        return NODE, f"there is no node {verdict.node!r} in this run"
    targets = _targets(asked, verdict, run)
    if len(targets) != 1 and not verdict.node and asked.kind == "gate":
        able = ", ".join(targets[:10]) or "none"
        return NODE, f"name the node that is to be made again; this review is about {able}"
    for target in targets:
        node = run.nodes[target]
        if reason := commands.why_not_changed(node) or commands.why_not_redriven(node):
            return NODE, reason
    return None if targets else (NODE, "nothing that this review is about can be made again")


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
        noted = (asking.doubted(node, asked.cause, verdict.who),) if asked.kind == "charge_doubt" else ()
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
    if verdict.node:
        said["target"] = verdict.node
    if verdict.limits:
        said["budget"] = limit_said(verdict)
    return said


def change_said(said: Mapping[str, Any]) -> str:
    """A digest of what is to be made again and how, as an event of `_said` tells it."""
    return digest([said.get("target", ""), said.get("input", {}), said.get("supply", "")])


def change_of(verdict: Verdict) -> str:
    """As `change_said`, of a decision that is not on record."""
    return change_said({"target": verdict.node, "input": verdict.input, "supply": verdict.supply})


def limit_said(verdict: Verdict) -> dict[str, Any] | None:
    """The new limit as events tell it: `{currency, amount}`, `{attempts}` or `{review_minutes}`; None = none said."""
    if verdict.budget:
        return dict(verdict.budget)
    return dict(verdict.limits) or None


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
    return failed(node, Failure.of(REJECTED, f"{verdict.decision} by {verdict.who}: {said}"))


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
        told = {"node": node.id, "input_hash": node.input_hash, "waived_by": verdict.who}
        return (Draft("node_completed", {**told, **passed_on(plan, run, node)}),)
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
    told = {"node": node.id, "budget_id": asking.level_of(asked), "limit": limit_said(verdict), "who": verdict.who}
    if verdict.decision is Decision.RAISE_BUDGET:  # the ledger is told by an act, again and again until it knows
        more = {"dimension": asked.dimension or "cost", "review_id": asked.id, "comment": verdict.comment}
        return (Draft("budget_raise_decided", {**told, **more}),)
    if verdict.decision is Decision.APPROVE:  # it was raised elsewhere
        return (Draft("budget_raised", told),)
    if asking.of_minutes(asked):
        return _unlooked(plan, run, asked, verdict)
    waiting = [each for each in run.nodes.values() if each.refused_by == asked.root_cause]
    error = Failure.of("budget_exhausted", asked.cause)
    return tuple(failed(each, error, "budget") for each in waiting)


def _unlooked(plan: Plan, run: Run, asked: Question, verdict: Verdict) -> Drafts:
    """There are no minutes to look at these: waived they pass, on the word of who says so; else they end with it."""
    said = replace(verdict, comment=verdict.comment or asked.cause)
    waiting = [due.question for due in run.due.values() if due.refused_by == asked.root_cause]
    return tuple(draft for each in waiting for draft in decided(plan, run, each, said))


def _unpriced(plan: Plan, run: Run, node: Node, asked: Question, verdict: Verdict) -> Drafts:
    if verdict.decision is Decision.APPROVE:  # a price is there by now
        return (Draft("budget_raised", {"node": node.id, "budget_id": "", "limit": None, "who": verdict.who}),)
    waiting = [each for each in run.nodes.values() if each.refused_by == asked.root_cause]
    error = Failure.of("budget_exhausted", asked.cause)
    return tuple(failed(each, error, "budget") for each in waiting)


def _doubt(plan: Plan, run: Run, node: Node, asked: Question, verdict: Verdict) -> Drafts:
    noted = asking.doubted(node, asked.cause, verdict.who)
    if verdict.decision is Decision.APPROVE:
        waits = {"node": node.id, "state": "pending", "reason": "", "retry": "a person accepts a second charge"}
        return (noted, Draft("node_waiting", waits))
    last = node.failures[-1] if node.failures else Failure.of("submission_unresolved", "")
    return (noted, failed(node, last, "operations"))


_BY_KIND: Mapping[str, Callable[[Plan, Run, Node, Question, Verdict], Drafts]] = {
    "check": _check,
    "canary": _canary,
    "budget": _budget,
    "unpriced": _unpriced,
    "charge_doubt": _doubt,
}
