"""Tasks, Attempts, Selections and alerts."""

from datetime import datetime

from libs.faults.fault import Fault
from libs.rpc.paging import LARGEST_PAGE, page_size
from libs.rpc.values import money_to_proto, struct_from, struct_to_dict, time_from_proto, time_to_proto
from pointsman.routing.v1 import routing_service_pb2, task_pb2, tenant_budget_pb2
from services.routing.app.submit_task import Submission
from services.routing.domain.decision import Decision, Fate, Inputs
from services.routing.domain.estimate import Estimate
from services.routing.domain.request import NO_TERMS, Request, Terms
from services.routing.domain.rounds import SelectionRound
from services.routing.domain.selection_record import recorded_decision, recorded_inputs
from services.routing.domain.task import Attempt, LateWord, Result, Task, TaskState
from services.routing.ports import TaskQuery
from services.routing.wire import failures
from services.routing.wire.artifacts import artifact_to_proto

PRIORITIES = {
    task_pb2.PRIORITY_UNSPECIFIED: "normal",
    task_pb2.PRIORITY_HIGH: "high",
    task_pb2.PRIORITY_NORMAL: "normal",
    task_pb2.PRIORITY_LOW: "low",
}
PRIORITY_NUMBERS = {
    "high": task_pb2.PRIORITY_HIGH,
    "normal": task_pb2.PRIORITY_NORMAL,
    "low": task_pb2.PRIORITY_LOW,
}


def submission_from_proto(message: routing_service_pb2.SubmitTaskRequest) -> Submission:
    """What is handed over. Fault `validation_failed` naming every required field that is missing."""
    named = () if message.validate_only else ("request_id",)  # what is only checked gets no identity
    missing = [name for name in (*named, "tenant", "model") if not getattr(message, name)]
    if missing:
        raise Fault.invalid(*((f"/{name}", "is required") for name in missing))
    options = message.options
    if options.priority not in PRIORITIES:
        raise Fault.invalid(("/options/priority", "must be high, normal or low"))
    request = Request(
        tenant=message.tenant,
        model=message.model,
        input=struct_to_dict(message.input),
        degradation=options.degradation,
        billing_mode=options.billing_mode,
        priority=PRIORITIES[options.priority],
        deadline=time_from_proto(options.deadline_time),
        terms=_terms(options),
    )
    origin_at = time_from_proto(message.origin_time)
    return Submission(message.request_id, request, message.run_id, message.node_id, message.cancel_requested, origin_at)


def _terms(options: task_pb2.TaskOptions) -> Terms | None:
    terms = Terms(
        supply=options.supply_id,
        max_attempts=options.max_attempts,
        hold=options.hold_id,
        stage=options.stage,
        blocking=options.blocking,
        blocks_release=options.blocks_release,
    )
    return None if terms == NO_TERMS else terms


def query_from_proto(message: routing_service_pb2.ListTasksRequest) -> TaskQuery:
    """Which Tasks are asked for. Fault `validation_failed` for a state that does not exist."""
    known = {number: name for name, number in task_pb2.TaskState.items() if number}
    if any(state not in known for state in message.states):
        raise Fault.invalid(("/states", "names a state that does not exist"))
    return TaskQuery(
        task_ids=tuple(message.task_ids),
        states=tuple(known[state].removeprefix("TASK_STATE_").lower() for state in message.states),
        uncertain=message.with_uncertain_attempts,
        tenant=message.tenant,
        page_size=page_size(message.page_size),
        page_token=message.page_token,
    )


def task_ids_from_proto(message: routing_service_pb2.PauseTasksRequest) -> tuple[str, ...]:
    """Which Tasks, each once. Fault `validation_failed` for more than may be named at once."""
    if len(message.task_ids) > LARGEST_PAGE:
        problem = f"names {len(message.task_ids)} tasks; at most {LARGEST_PAGE} at once, the others by another call"
        raise Fault.invalid(("/task_ids", problem))
    return tuple(dict.fromkeys(message.task_ids))


def tenant_and_time_from_proto(message: tenant_budget_pb2.TenantBudgetRequest) -> tuple[str, datetime]:
    """Whose budget, and a time in its period. Fault `validation_failed`."""
    try:
        came_at = time_from_proto(message.origin_time) if message.HasField("origin_time") else None
    except (OverflowError, ValueError):
        raise Fault.invalid(("/origin_time", "is a time that no calendar has")) from None
    missing = [name for name, said in (("tenant", message.tenant), ("origin_time", came_at)) if not said]
    if missing or came_at is None:
        raise Fault.invalid(*((f"/{name}", "is required") for name in missing))
    return message.tenant, came_at


def task_to_proto(task: Task) -> task_pb2.Task:
    """A Task with its Attempts."""
    return task_pb2.Task(
        id=task.id,
        run_id=task.run_id,
        node_id=task.node_id,
        tenant=task.request.tenant,
        model=task.request.model,
        state=task_pb2.TaskState.Value(f"TASK_STATE_{task.state.name}"),
        waiting_reason=task.told_reason,
        attempts=[attempt_to_proto(attempt) for attempt in task.attempts],
        selection_round_count=task.rounds,
        result=result_to_proto(task.result) if task.state is TaskState.SUCCEEDED and task.result else None,
        failure=failures.to_proto(task.failure),
        create_time=time_to_proto(task.created_at),
        finish_time=time_to_proto(task.finished_at),
        cost=money_to_proto(task.spent),
        revision=task.revision,
        input=struct_from(task.request.input),
        options=options_to_proto(task.request),
        cancel_requested=task.cancel_requested,
        kind=task.kind,
    )


def options_to_proto(request: Request) -> task_pb2.TaskOptions:
    """What was said beside the input."""
    terms = request.terms or NO_TERMS
    return task_pb2.TaskOptions(
        degradation=request.degradation,
        billing_mode=request.billing_mode,
        priority=PRIORITY_NUMBERS.get(request.priority, task_pb2.PRIORITY_UNSPECIFIED),
        deadline_time=time_to_proto(request.deadline),
        supply_id=terms.supply,
        max_attempts=terms.max_attempts,
        hold_id=terms.hold,
        stage=terms.stage,
        blocking=terms.blocking,
        blocks_release=terms.blocks_release,
    )


def attempt_to_proto(attempt: Attempt) -> task_pb2.Attempt:
    """One Attempt."""
    return task_pb2.Attempt(
        id=attempt.id,
        number=attempt.number,
        supply_id=attempt.supply,
        channel_id=attempt.channel,
        state=task_pb2.AttemptState.Value(f"ATTEMPT_STATE_{attempt.state.name}"),
        client_token=attempt.client_token,
        provider_task_id=attempt.provider_task_id,
        failure=failures.to_proto(attempt.failure),
        quote=money_to_proto(attempt.quote),
        cost=money_to_proto(attempt.cost),
        submit_time=time_to_proto(attempt.submitted_at),
        accept_time=time_to_proto(attempt.accepted_at),
        finish_time=time_to_proto(attempt.finished_at),
        epoch=attempt.epoch,
        selection_round=attempt.round,
        reconcile_count=attempt.reconcile_count,
        uncertain_deadline_time=time_to_proto(attempt.uncertain_deadline),
        task_id=attempt.task_id,
        late=None if attempt.late is None else _late_to_proto(attempt.late),
    )


def _late_to_proto(word: LateWord) -> task_pb2.LateWord:
    return task_pb2.LateWord(
        outcome=word.outcome,
        hear_time=time_to_proto(word.heard_at),
        artifacts=[artifact_to_proto(item) for item in word.artifacts],
        failure=failures.to_proto(word.failure),
        cost_before=money_to_proto(word.booked_before),
    )


def result_to_proto(result: Result) -> task_pb2.TaskResult:
    """What a Task gave. A degraded result says so (TIER-6)."""
    degradation = None
    if result.rule:
        degradation = task_pb2.Degradation(
            rule_id=result.rule,
            requested_profile=result.requested_profile,
            actual_profile=result.actual_profile,
            dropped_inputs=result.dropped_inputs,
        )
    return task_pb2.TaskResult(
        artifacts=[artifact_to_proto(item) for item in result.artifacts],
        output=struct_from(result.output),
        degradation=degradation,
        usage=struct_from(result.usage),
        profile=result.actual_profile or result.requested_profile,
    )


def selection_to_proto(item: SelectionRound) -> task_pb2.Selection:
    """One round, for a person and for replay."""
    decision, inputs = recorded_decision(item.record), recorded_inputs(item.record)
    return task_pb2.Selection(
        round=item.round,
        tier=decision.tier,
        policy_id=inputs.policy.id,
        policy_revision=inputs.policy.revision,
        baseline=money_to_proto(decision.baseline),
        spent=money_to_proto(inputs.spent),
        candidates=[_fate(fate) for fate in decision.fates],
        chosen_supply_id=decision.chosen,
        steps=decision.steps,
        decide_time=time_to_proto(item.decided_at),
        record_json=item.record,
        outcome=_outcome(item, decision),
        limits=struct_from(_limits(inputs)),
    )


def _outcome(item: SelectionRound, decision: Decision) -> str:
    words = item.note or decision.waiting_reason or decision.failure_code
    return f"{item.outcome.value}: {words}" if words else item.outcome.value


def _limits(inputs: Inputs) -> dict[str, object]:
    """The guardrails that were in force (COST-8)."""
    policy = inputs.policy
    return {
        "currency": inputs.currency,
        "stable_cost_multiplier_limit": policy.stable_cost_multiplier_limit,
        "fallback_cost_multiplier_limit": policy.fallback_cost_multiplier_limit,
        "absolute_cost_limit": policy.absolute_cost_limit,
        "emergency_availability": policy.emergency_availability,
        "emergency_cost_limit": policy.emergency_cost_limit,
    }


def _fate(fate: Fate) -> task_pb2.CandidateFate:
    return task_pb2.CandidateFate(
        supply_id=fate.supply,
        tier=fate.tier,
        fate=fate.fate,
        rank=fate.rank,
        step=fate.step,
        reason=fate.reason,
        figures=fate.figures,
        quote=money_to_proto(fate.quote),
        health=fate.health,
        success_rate=fate.success_rate,
        free_slots=fate.free_slots,
        priority=fate.priority,
    )


def estimate_to_proto(estimate: Estimate) -> routing_service_pb2.Estimate:
    """What a Task may cost at worst."""
    return routing_service_pb2.Estimate(
        worst_cost=money_to_proto(estimate.worst_cost),
        max_attempts=estimate.max_attempts,
        unpriced_reason=estimate.unpriced_reason,
    )
