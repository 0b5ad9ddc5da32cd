"""Questions to people, each with what is needed to answer it (HUMAN-1). Ids follow from what is asked, so that asking
twice is one question."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from libs.kernel.canonical import canonical_json, digest, plain
from libs.kernel.money import Money
from services.runs.domain import amounts, event_data
from services.runs.domain.plan import Plan, Rank, Spec, ValueClass
from services.runs.domain.run import Artifact, Decision, Draft, Node, NodeState, Question, Run
from services.runs.domain.task_view import Refused

ID_LENGTH = 26
LAST_ADDRESSEE = "operator"
SHOWN_TEXTS = (2_000, 200)
"""Characters of each text of a subject that are shown: if it is long, fewer."""
SHOWN_BYTES = 32 * 1024
_SAY: Mapping[str, tuple[Decision, ...]] = {
    "gate": (Decision.APPROVE, Decision.REJECT, Decision.CHANGE_INPUT, Decision.REROUTE, Decision.WAIVE, Decision.STOP),
    "check": (Decision.WAIVE, Decision.CHANGE_INPUT, Decision.REROUTE, Decision.REJECT, Decision.STOP),
    "canary": (Decision.APPROVE, Decision.REJECT, Decision.CHANGE_INPUT, Decision.REROUTE, Decision.STOP),
    "budget": (Decision.RAISE_BUDGET, Decision.APPROVE, Decision.CHANGE_INPUT, Decision.WAIVE, Decision.STOP),
    "unpriced": (Decision.APPROVE, Decision.REROUTE, Decision.CHANGE_INPUT, Decision.WAIVE, Decision.STOP),
    "charge_doubt": (Decision.APPROVE, Decision.REROUTE, Decision.WAIVE, Decision.STOP),
}
_MEANS: Mapping[Decision, str] = {
    Decision.APPROVE: "approve: it goes on as it is",
    Decision.REJECT: "reject: say in the comment what is to be changed",
    Decision.REROUTE: "reroute: another supply makes it again",
    Decision.CHANGE_INPUT: "change_input: fields of its input change, and it is made again",
    Decision.RAISE_BUDGET: "raise_budget: the limit that refused becomes what you say",
    Decision.WAIVE: "waive: it is accepted as it is, or left out",
    Decision.STOP: "stop: no more of this",
}
LOOK_AGAIN = "approve: it looks for money again"
_ABOUT_MINUTES = (Decision.RAISE_BUDGET, Decision.APPROVE, Decision.WAIVE, Decision.STOP)
_COUNTED: Mapping[str, str] = {"cost": "money", "review_minutes": "minutes of reviewers", "deadline": "time"}
MINUTES = "-minutes"
RAISED = ("cost", "attempts", "review_minutes")
"""What a decision can raise."""


def question(
    plan: Plan,
    run: Run,
    node: Node,
    kind: str,
    now: datetime,
    *,
    asks: str,
    cause: str,
    subject_hash: str = "",
    root_cause: str = "",
    artifacts: Sequence[Artifact] = (),
    about: Sequence[Node] = (),
    subject: Any = None,
) -> Question:
    """The question; its context pack is what the Run knows of the nodes that it is about."""
    spec = plan.spec(node.id)
    nodes = tuple(about) or (node,)
    decisions = _SAY[kind]
    return Question(
        id=digest([run.id, node.id, kind, subject_hash, root_cause, node.tries, run.last_sequence])[:ID_LENGTH],
        node=node.id,
        kind=kind,
        question=spec.review.question or asks,
        cause=cause,
        subject_hash=subject_hash,
        decisions=decisions,
        deadline=now + spec.review.deadline,
        deputy=spec.review.deputy,
        rank=rank_of(plan, spec).value,
        opened_at=now,
        span_s=spec.review.deadline.total_seconds(),
        root_cause=root_cause or f"{kind}:{node.parent or node.id}",
        subjects=tuple(each.id for each in nodes if each.id != node.id),
        artifacts=tuple(artifacts),
        failures=tuple(failure for each in nodes for failure in _failures(each)),
        remedies=_remedies(kind, decisions),
        spent=_spent(nodes),
        input=node.input,
        subject=shown(subject),
    )


def _remedies(kind: str, decisions: Sequence[Decision]) -> tuple[str, ...]:
    waits = kind in ("budget", "unpriced")
    return tuple(LOOK_AGAIN if waits and each is Decision.APPROVE else _MEANS[each] for each in decisions)


def shown(subject: Any) -> Any:
    """What a gate declares, as far as a person reads it: long texts are cut, and say so; None beyond the limit."""
    for longest in SHOWN_TEXTS:
        cut = _cut(subject, longest)
        if len(canonical_json(cut)) <= SHOWN_BYTES:
            return cut
    return None


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:longest]}… ({len(value)} characters)"
    if isinstance(value, Mapping):
        return {name: _cut(inner, longest) for name, inner in value.items()}
    return [_cut(inner, longest) for inner in value] if isinstance(value, list | tuple) else value


def limit_root(plan: Plan, node_id: str, budget_id: str, *, minutes: bool = False) -> str:
    """What makes questions about limits one: the level, whether a review or a node waits for it, and its value class;
    a background node behind a limit takes nothing away from what a hero may ask for."""
    asks = "simplify" if plan.spec(node_id).worth is ValueClass.BACKGROUND else "budget"
    return f"{asks}{MINUTES if minutes else ''}:{budget_id}"


def level_of(asked: Question) -> str:
    """The budget that a question about a limit is about."""
    return asked.root_cause.partition(":")[2]


def of_minutes(asked: Question) -> bool:
    """Whether reviews wait behind a question about a limit, not nodes."""
    return asked.kind == "budget" and asked.root_cause.partition(":")[0].endswith(MINUTES)


def for_more(plan: Plan, run: Run, about: Sequence[Node], refusal: Refused, now: datetime, root: str) -> Question:
    """The request for more of what was refused (COST-10): past attempts, the cause, and what there is instead.

    A hero and a normal node ask for more; of a background node it is asked how it is to be simplified. A deadline is
    moved where budgets are kept.
    """
    node = about[0]
    simplified = plan.spec(node.id).worth is ValueClass.BACKGROUND
    asked = question(plan, run, node, "budget", now, asks="", cause=refusal.message, root_cause=root, about=about)
    decisions = _ABOUT_MINUTES if of_minutes(asked) else asked.decisions
    if simplified or refusal.dimension not in RAISED:
        decisions = tuple(each for each in decisions if each is not Decision.RAISE_BUDGET)
    what = _COUNTED.get(refusal.dimension, refusal.dimension)
    if simplified:
        said = f"How is {node.id} to be simplified? A background node gets no more {what} from here."
    else:
        said = f"May {refusal.level} {refusal.budget_id} have more {what}?"
        if refusal.dimension == "deadline":
            said += " Move it with `pointsman budget raise`, and what waits asks again."
        elif refusal.dimension != "cost":
            said += f" raise_budget names the new limit as `{refusal.dimension}`."
    said = f"{said} {_tried(run, about)} {_instead(asked)}"
    remedies = _remedies(asked.kind, decisions)
    return replace(asked, question=said, dimension=refusal.dimension, decisions=decisions, remedies=remedies)


def _tried(run: Run, about: Sequence[Node]) -> str:
    made, failed = sum(node.attempts_made for node in about), sum(len(_failures(node)) for node in about)
    names = ", ".join(node.id for node in about[:3]) + (" …" if len(about) > 3 else "")
    cost = f"{run.usage.cost.amount:f} {run.usage.cost.currency}" if run.usage.cost else "nothing"
    whole = f"{run.usage.attempts} in the whole run, which cost {cost} and {run.review_minutes} minutes of reviewers"
    return f"Attempts so far: {made} for {names}, {failed} of them failed; {whole}."


def _instead(asked: Question) -> str:
    if of_minutes(asked):
        return "Instead: waive lets it pass without a look, on your word; deciding what is open may free minutes."
    return "Instead: change_input makes it of less, waive leaves it out."


def _failures(node: Node) -> tuple[Any, ...]:
    return (*node.failures, node.failure) if node.failure else node.failures


def _spent(nodes: Sequence[Node]) -> Money | None:
    total = None
    for node in nodes:
        total = amounts.added(total, node.cost)
    return total


def rank_of(plan: Plan, spec: Spec) -> Rank:
    """Rights and facts first, then what holds up the end, then heroes, then the rest (HUMAN-3)."""
    if spec.review.rank is not Rank.REST:
        return spec.review.rank
    if spec.id and not plan.dependants(spec.id):
        return Rank.RELEASE
    return Rank.HERO if spec.worth is ValueClass.HERO else Rank.REST


def opened(question: Question) -> Draft:
    """The event that asks. A gate's is its own kind."""
    told = {"node": question.node, "review": as_json(question)}
    if question.kind == "gate":
        return Draft("gate_opened", {**told, "reason": f"gate: {question.question}"})
    return Draft("review_opened", told)


def as_json(question: Question) -> dict[str, Any]:
    """A question in the data of events, the inverse of `event_data.question`."""
    value: dict[str, Any] = plain(question)
    return {**value, "spent": event_data.money_json(question.spent)}


def open_for(run: Run, kind: str, node_id: str = "", root_cause: str = "") -> Question | None:
    """The question of that kind about that node or of that cause, if there is one or will be."""
    for asked in run.asked.values():
        if asked.kind == kind and node_id in ("", asked.node) and root_cause in ("", asked.root_cause):
            return asked
    return None


def overdue(run: Run, now: datetime) -> tuple[Draft, ...]:
    """Deadlines that have passed are executed: the deputy is asked, then the operator (HUMAN-1)."""
    drafts = []
    for asked in run.questions.values():
        if asked.deadline > now:
            continue
        to = asked.deputy if not asked.escalations else LAST_ADDRESSEE
        told = {
            "review_id": asked.id,
            "node": asked.node,
            "from": asked.assignee,
            "assignee": to,
            "escalations": asked.escalations + 1,
            "deadline": now + _span(asked, to),
            "cause": f"no decision until {plain(asked.deadline)}",
        }
        drafts.append(Draft("review_escalated", told))
    return tuple(drafts)


def _span(asked: Question, to: str) -> timedelta:
    """How long the next addressee has. Beyond the operator there is nobody: who is asked again is asked once a day."""
    span = timedelta(seconds=max(asked.span_s, 1.0))
    return max(span, timedelta(days=1)) if to == asked.assignee else span


def withdrawn(run: Run, cause: str, *, only: Sequence[str] | None = None, who: str = "") -> tuple[Draft, ...]:
    """Questions that nobody needs to answer any more. A charge in doubt is noted before it is forgotten (COST-12)."""
    drafts: list[Draft] = []
    for asked in run.asked.values():
        if only is None or asked.id in only:
            if asked.kind == "charge_doubt":
                drafts.append(doubted(run.nodes[asked.node], f"{asked.cause}; {cause}", who))
            drafts.append(Draft("review_withdrawn", {"review_id": asked.id, "node": asked.node, "cause": cause}))
    return tuple(drafts)


def doubted(node: Node, cause: str, who: str) -> Draft:
    """A charge that may have doubled is on record, whatever was decided about it (RUN-6)."""
    told = {"node": node.id, "cause": cause, "who": who, "amount": event_data.money_json(node.cost)}
    return Draft("cost_anomaly", told)


def asks_for_money(node: Node) -> bool:
    """Whether it is about to ask a budget; who was refused and waits for room does not."""
    return node.state is NodeState.LEASED and node.hold is None and not node.refused


def unneeded(run: Run) -> tuple[Draft, ...]:
    """Questions about limits behind which nothing waits any more, and about nodes that ended otherwise."""
    asking = any(map(asks_for_money, run.nodes.values()))
    gone = [
        asked
        for asked in run.asked.values()
        if (asked.kind == "budget" and not _waited_for(run, asked, asking)) or _ended_otherwise(run, asked)
    ]
    return tuple(draft for asked in gone for draft in withdrawn(run, _why_unneeded(run, asked), only=[asked.id]))


def _why_unneeded(run: Run, asked: Question) -> str:
    """Of a question about a limit: whether those who waited have found room there."""
    about = (asked.node, *asked.subjects)
    found = any(run.nodes[name].hold is not None for name in about)
    if of_minutes(asked):
        found = any(kept.node in about and kept.used is None for kept in run.reserved.values())
    if asked.kind == "budget" and found:
        return f"{level_of(asked)} has room again: what waited for it goes on"
    return "it is settled without a decision"


def _waited_for(run: Run, asked: Question, asking: bool) -> bool:
    if of_minutes(asked):
        return any(due.refused_by in ("", asked.root_cause) for due in run.due.values())
    return asking or any(node.refused_by == asked.root_cause for node in run.nodes.values())


def overtaken(plan: Plan, run: Run) -> tuple[Draft, ...]:
    """Gates whose subject is being made again are closed until it is there again."""
    drafts: list[Draft] = []
    for asked in run.asked.values():
        if asked.kind != "gate":
            continue
        away = [need for need in plan.spec(asked.node).needs if run.nodes[need].state is not NodeState.SUCCEEDED]
        if away:
            drafts += withdrawn(run, f"{', '.join(away)} is made again", only=[asked.id])
            waits = {"node": asked.node, "state": "pending", "reason": f"dependency: {away[0]} is made again"}
            drafts.append(Draft("node_waiting", waits))
    return tuple(drafts)


def _ended_otherwise(run: Run, asked: Question) -> bool:
    if asked.kind == "canary" and asked.id not in run.due:
        return False
    return run.nodes[asked.node].state in (NodeState.SUCCEEDED, NodeState.CANCELLED, NodeState.FAILED)
