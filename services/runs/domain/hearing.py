"""What a Run makes of the answers from outside. Pure: every function answers the events that tell the change.

Laws of this file:
- an answer to an earlier try of a node changes nothing;
- an attempt is told started once and finished once, whatever revisions of its Task were seen or missed;
- a technical failure is tried again within the node's budget; what was wrong with the content is never tried again
  unchanged (RUN-4); where nobody can tell what was charged, a person decides (RUN-6).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from libs.kernel.canonical import plain
from libs.kernel.money import Money
from services.runs.domain import asking, ending, event_data
from services.runs.domain.history import applied
from services.runs.domain.inputs import passed_on
from services.runs.domain.judging import SETTLED, SOUND
from services.runs.domain.minutes import asked_for, slowed
from services.runs.domain.plan import Plan, Spec
from services.runs.domain.room import ROOM
from services.runs.domain.run import (
    Draft,
    Failure,
    Node,
    NodeState,
    Raising,
    Result,
    Run,
    RunState,
)
from services.runs.domain.starting import failed
from services.runs.domain.task_view import PAUSED, AttemptView, Finding, Held, Refused, TaskView, Unpriced

Drafts = tuple[Draft, ...]
ATTEMPT_ENDS = frozenset({"succeeded", "failed", "cancelled", "not_accepted", "unresolved"})
TASK_ENDS = frozenset({"succeeded", "failed", "cancelled"})
TECHNICAL = frozenset({"supply", "capacity"})
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 2.0, 120.0
IN_DOUBT = "submission_unresolved"


def created(run: Run) -> Drafts:
    """The first event of a new Run: all that its history begins with."""
    order = None
    if run.production is None:
        order = {name: plain(getattr(run.order, name)) for name in run.order.__slots__}
    told = {
        "model": run.order.model,
        "production": run.production,
        "order": order,
        "labels": dict(run.labels),
        "tenant": run.tenant,
        "budget_id": run.budget_id,
        **({"budget_parent": run.budget_parent} if run.budget_parent else {}),
        "nodes": list(run.nodes),
        "node_list": [
            {"id": node.id, "kind": node.kind, **({"task_id": node.task_id} if node.task_id else {})}
            for node in run.nodes.values()
        ],
    }
    return (Draft("run_created", told),)


def submitted(run: Run, node: Node) -> Drafts:
    """Routing has taken the node's Task into care."""
    drafts: list[Draft] = []
    if run.state is RunState.PENDING:
        drafts.append(Draft("run_started"))
    if node.state is NodeState.PENDING:  # straight on from its creation
        drafts.append(Draft("node_ready", {"node": node.id, "try": 1, "task_id": node.task_id}))
    elif node.state is not NodeState.LEASED:
        return ()
    return (*drafts, Draft("node_started", {"node": node.id, "kind": node.kind, "task_id": node.task_id}))


def refused(plan: Plan, run: Run, node: Node, failure: Failure, now: datetime) -> Drafts:
    """Routing will never take the Task."""
    if node.state not in (NodeState.PENDING, NodeState.LEASED):
        return ()
    return _over(plan, run, node, (failed(node, failure),), RunState.FAILED, failure, now)


def withdrawn(plan: Plan, run: Run, node: Node, now: datetime) -> Drafts:
    """A cancel came before anything was handed to routing, which was asked."""
    if node.state not in (NodeState.PENDING, NodeState.LEASED):
        return ()
    why = ending.stopping(plan, run, now) or "it was cancelled"
    drafts = (Draft("node_cancelled", {"node": node.id, "reason": why}),)
    return _over(plan, run, node, drafts, RunState.CANCELLED, None, now)


def held(plan: Plan, run: Run, node: Node, hold_id: str, answer: Held | Refused | Unpriced, now: datetime) -> Drafts:
    """A budget has answered (COST-9, COST-10)."""
    if node.state is not NodeState.LEASED or node.hold is not None or node.task_id != hold_id:
        return ()
    if isinstance(answer, Held):
        told = {"node": node.id, "hold_id": hold_id, "budget_id": answer.budget_id, "attempts": answer.attempts}
        return (
            Draft("budget_held", {**told, "amount": event_data.money_json(answer.amount)}),
            *slowed(run, node.id, answer),
        )
    if plan.single:
        message = answer.message if isinstance(answer, Refused) else answer.reason
        failure = Failure.of("budget_exhausted", message)
        return _over(plan, run, node, (failed(node, failure),), RunState.FAILED, failure, now)
    return _money_asked(plan, run, node, answer, now)


def begun_anew(node: Node) -> Drafts:
    """What was recorded for this try no longer holds: another one begins."""
    return (Draft("node_waiting", {"node": node.id, "state": "pending", "reason": "its price has changed"}),)


def _money_asked(plan: Plan, run: Run, node: Node, answer: Refused | Unpriced, now: datetime) -> Drafts:
    """The node waits for a person; nodes that one level refuses come together as one question (HUMAN-3). Where only
    Holds of what is under way stand in the way it waits for these first, and nobody is asked."""
    if isinstance(answer, Refused) and answer.may_free:
        reason = f"budget: {answer.level} {answer.budget_id} has no room until what is under way there is settled"
        quiet = {"node": node.id, "reason": reason, "refused": True, "lacks": answer.lacks}
        return (Draft("node_waiting", {**quiet, "root_cause": f"{ROOM}:{answer.budget_id}"}),)
    if isinstance(answer, Refused):
        kind, cause = "budget", answer.message
        root = asking.limit_root(plan, node.id, answer.budget_id)
    else:
        kind, root, cause = "unpriced", f"unpriced:{node.parent or node.id}", answer.reason
    told = {"node": node.id, "state": "waiting_human", "reason": f"budget: {cause}", "refused": True}
    lacks = answer.lacks if isinstance(answer, Refused) else {}
    waits = Draft("node_waiting", {**told, "root_cause": root, "lacks": lacks})
    if asking.open_for(run, kind, "", root) is not None:
        return (waits,)
    if isinstance(answer, Refused):
        return waits, asking.opened(asking.for_more(plan, run, [node], answer, now, root))
    asks = f"Nobody can say what {node.id} would cost. What is to become of it?"
    return waits, asking.opened(asking.question(plan, run, node, kind, now, asks=asks, cause=cause, root_cause=root))


def settled(run: Run, node: Node, amount: Money | None, soft: Sequence[str]) -> Drafts:
    """The Hold of a try that has ended is booked at what it really cost."""
    if node.hold is None:
        return ()
    told = {"node": node.id, "hold_id": node.hold.id, "budget_id": node.hold.budget_id}
    drafts: Drafts = (Draft("budget_settled", {**told, "amount": event_data.money_json(amount)}),)
    return (*drafts, *(Draft("budget_soft_limit", {"budget_id": name, "node": node.id}) for name in soft))


def raised(asked: Raising) -> Drafts:
    """The ledger has the limit that a person decided."""
    return (Draft("budget_raised", _limit(asked)),)


def not_raised(asked: Raising, cause: str) -> Drafts:
    """The ledger will never take it: whoever was refused asks again, and so a person is asked again."""
    return (Draft("budget_not_raised", {**_limit(asked), "cause": cause}),)


def _limit(asked: Raising) -> dict[str, Any]:
    told = {"node": asked.node, "budget_id": asked.budget_id, "limit": dict(asked.limit)}
    return {**told, "who": asked.who, "review_id": asked.review_id}


def followed(plan: Plan, run: Run, node: Node, task: TaskView, findings: Sequence[Finding], now: datetime) -> Drafts:
    """The node's Task as it is now; `findings` are of its checks, once it has succeeded."""
    if node.state is not NodeState.RUNNING or task.id != node.task_id:
        return ()
    drafts = _attempts(node, task)
    if task.state in TASK_ENDS:
        return _finished(plan, run, node, task, drafts, findings, now)
    told = task.waiting_reason or node.waiting_reason.startswith(PAUSED)  # the end of a pause is told even by silence
    if told and task.waiting_reason != node.waiting_reason:
        drafts = (*drafts, Draft("node_waiting", {"node": node.id, "reason": task.waiting_reason}))
    return drafts


def _attempts(node: Node, task: TaskView) -> Drafts:
    drafts: list[Draft] = []
    for attempt in task.attempts:
        before = node.attempts.get(attempt.id)
        if before is None:
            drafts.append(Draft("attempt_started", _about(node, attempt)))
        if attempt.state in ATTEMPT_ENDS and before not in ATTEMPT_ENDS:
            end = {"state": attempt.state, "cost": event_data.money_json(attempt.cost), "error": plain(attempt.failure)}
            if attempt.provider_task_id:
                end["provider_task_id"] = attempt.provider_task_id
            drafts.append(Draft("attempt_finished", {**_about(node, attempt), **end}))
    return tuple(drafts)


def _about(node: Node, attempt: AttemptView) -> dict[str, Any]:
    return {
        "node": node.id,
        "task_id": node.task_id,
        "attempt_id": attempt.id,
        "number": attempt.number,
        "supply": attempt.supply,
        "channel": attempt.channel,
        "quote": attempt.quote and attempt.quote.to_json(),
    }


def _finished(
    plan: Plan, run: Run, node: Node, task: TaskView, before: Drafts, findings: Sequence[Finding], now: datetime
) -> Drafts:
    run_now = applied(run, before, now)
    now_node = run_now.nodes[node.id]
    if task.state == "succeeded":
        written = tuple(Draft("artifact_written", {"node": node.id, **plain(each)}) for each in task.artifacts)
        if wrong := [finding for finding in findings if finding.failed]:
            return (*before, *written, *_spoiled(now_node, wrong))
        told = {"node": node.id, "input_hash": node.input_hash, **event_data.result_json(_result(task))}
        if plan.spec(node.id).memo:
            told["memo"] = True
        done = (*before, *written, Draft("node_completed", told))
        return _over(plan, run, node, done, RunState.SUCCEEDED, None, now)
    failure = task.failure
    if task.state == "cancelled":
        return _cancelled(plan, run, now_node, before, now)
    assert failure is not None, "a failed Task says why"
    if plan.single:
        state = RunState.TIMED_OUT if failure.code == "deadline_exceeded" else RunState.FAILED
        return _over(plan, run, node, (*before, failed(now_node, failure)), state, failure, now)
    return (*before, *_again(plan, run_now, now_node, failure, now))


def _cancelled(plan: Plan, run: Run, node: Node, before: Drafts, now: datetime) -> Drafts:
    """Routing ended it on request: ours, or an operator's, which leaves a production without that node."""
    why = ending.stopping(plan, run, now)
    if why or plan.single:
        drafts = (*before, Draft("node_cancelled", {"node": node.id, "reason": why or "its task was cancelled"}))
        return _over(plan, run, node, drafts, RunState.CANCELLED, None, now)
    failure = Failure.of("cancelled", "its task was cancelled")
    return (*before, failed(node, failure))


def _result(task: TaskView) -> Result:
    return Result(
        task.artifacts, task.output, task.degraded, task.requested_profile, task.actual_profile, task.dropped_inputs
    )


def _over(
    plan: Plan, run: Run, node: Node, drafts: Drafts, state: RunState, failure: Failure | None, now: datetime
) -> Drafts:
    """A single generation ends with its node, in one commit, once its money is settled; a production goes on."""
    after = applied(run, drafts, now)
    if not plan.single or after.nodes[node.id].hold is not None:
        return drafts
    return (*drafts, *ending.ended(after, state, failure))


def closed(run: Run) -> Drafts:
    """A single generation whose node has ended and whose money is settled."""
    node = run.node
    if node.state is NodeState.SUCCEEDED:
        return ending.ended(run, RunState.SUCCEEDED, None)
    if node.state is NodeState.CANCELLED:
        return ending.ended(run, RunState.CANCELLED, None)
    timed_out = node.failure is not None and node.failure.code == "deadline_exceeded"
    return ending.ended(run, RunState.TIMED_OUT if timed_out else RunState.FAILED, node.failure)


def _again(plan: Plan, run: Run, node: Node, failure: Failure, now: datetime) -> Drafts:
    """A failed Task of a production: tried again, brought before a person, or a case file."""
    spec = plan.spec(node.id)
    if failure.code == IN_DOUBT:
        return _doubted(plan, run, node, failure, now)
    if failure.category not in TECHNICAL:
        return (failed(node, failure),)
    used = node.attempts_made - node.allowance
    over = _used_up(spec, node, used, now)
    if over:
        exhausted = Failure(failure.category, failure.scope, False, failure.code, f"{failure.message} ({over})")
        return (failed(node, exhausted),)
    pause = min(FIRST_BACKOFF_S * 2 ** min(len(node.failures) - node.forgiven, 10), LONGEST_BACKOFF_S)
    retry_at = now + timedelta(seconds=pause)
    told = {"node": node.id, "state": "pending", "reason": f"backoff: until {plain(retry_at)}", "retry_at": retry_at}
    why = f"{failure.code}; attempt {used} of {spec.budget.attempts}; the input stays as it is"
    return (Draft("node_waiting", {**told, "error": plain(failure), "retry": why}),)


def _used_up(spec: Spec, node: Node, used: int, now: datetime) -> str:
    budget = spec.budget
    if used >= budget.attempts:
        return f"{used} of {budget.attempts} attempts are used"
    tried = len(node.failures) - node.forgiven + 1
    if tried > budget.attempts:
        return f"{tried} tries found nobody"
    if budget.wall_time is not None and node.began_at is not None and now - node.began_at >= budget.wall_time:
        return f"its wall time of {budget.wall_time} is over"
    return ""


def _doubted(plan: Plan, run: Run, node: Node, failure: Failure, now: datetime) -> Drafts:
    asked = asking.question(
        plan, run, node, "charge_doubt", now,
        asks=f"Nobody can tell whether a provider made {node.id}. May it be made again, though it may be paid twice?",
        cause=failure.message,
    )  # fmt: skip
    told = {"node": node.id, "state": "waiting_human", "reason": "charge in doubt: a person decides"}
    return (Draft("node_waiting", {**told, "error": plain(failure)}), asking.opened(asked))


def _spoiled(node: Node, wrong: Sequence[Finding]) -> Drafts:
    """It was made and paid, and its checks say no: content is never tried again unchanged."""
    said = "; ".join(f"{finding.check}: {finding.failed}" for finding in wrong)
    return (failed(node, Failure.of("check_failed", said), "content"),)


def examined(plan: Plan, run: Run, node: Node, findings: Sequence[Finding], now: datetime) -> Drafts:
    """A check node's findings: good, or a question that names what is not (GATE-1)."""
    if node.state is not NodeState.LEASED or node.id in run.awaited:
        return ()
    wrong = [finding for finding in findings if finding.failed]
    checked = {"node": node.id, "checked": len(findings)}
    if not wrong:
        return (Draft("node_completed", {**checked, **passed_on(plan, run, node), "input_hash": node.input_hash}),)
    names = dict.fromkeys(finding.node for finding in wrong)
    about = [run.nodes[name] for name in names if name != node.id]
    said = "; ".join(f"{finding.node}: {finding.check}: {finding.failed}" for finding in wrong[:10])
    asked = asking.question(
        plan, run, node, "check", now,
        asks=f"{len(names)} of what {node.id} looked at is not good. What is to become of it?",
        cause=said,
        subject_hash=node.input_hash,
        artifacts=list(dict.fromkeys(finding.artifact for finding in wrong if finding.artifact is not None)),
        about=[node, *about],
    )  # fmt: skip
    told = {"node": node.id, "reason": f"check: {said}", **_grave(wrong)}
    if plan.budget is None:  # else it waits for a person once there are minutes
        told["state"] = "waiting_human"
    return (Draft("node_waiting", told), *asked_for(plan, asked))


def _grave(wrong: Sequence[Finding]) -> dict[str, list[str]]:
    """The nodes whose files are not what was made, and those whose files contradict what was settled (SLO-2)."""
    unsound = dict.fromkeys(finding.node for finding in wrong if finding.check == SOUND)
    contradicts = dict.fromkeys(finding.node for finding in wrong if finding.check in SETTLED)
    found = {"unsound": list(unsound), "contradicts": list(contradicts)}
    return {name: nodes for name, nodes in found.items() if nodes}
