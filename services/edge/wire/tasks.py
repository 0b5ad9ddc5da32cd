"""Tasks, Attempts, Selections and alerts of routing."""

from collections.abc import Iterable, Iterator

from pointsman.routing.v1 import alert_pb2, restore_pb2, task_pb2
from services.edge.domain import alert_shapes, restore_shapes, shapes
from services.edge.wire.values import amount, artifact, failure, moment, word

OPEN_SUBMISSIONS = (
    task_pb2.AttemptState.ATTEMPT_STATE_SUBMISSION_UNCERTAIN,
    task_pb2.AttemptState.ATTEMPT_STATE_UNRESOLVED,
)


def task(message: task_pb2.Task) -> shapes.Task:
    """A Task as callers see it."""
    return shapes.Task(
        id=message.id,
        run_id=message.run_id or None,
        node_id=message.node_id or None,
        model=message.model,
        status=word(task_pb2.TaskState, message.state, "TASK_STATE_"),
        waiting_reason=message.waiting_reason or None,
        attempts=[_attempt(item) for item in message.attempts],
        selection_rounds=message.selection_round_count,
        cancel_requested=message.cancel_requested,
    )


def _attempt(message: task_pb2.Attempt) -> shapes.Attempt:
    return shapes.Attempt(
        id=message.id,
        number=message.number,
        supply=message.supply_id,
        channel=message.channel_id,
        state=word(task_pb2.AttemptState, message.state, "ATTEMPT_STATE_"),
        client_token=message.client_token,
        provider_task_id=message.provider_task_id or None,
        error=failure(message),
        quote=amount(message.quote),
        cost=amount(message.cost),
        submitted_at=moment(message.submit_time),
        accepted_at=moment(message.accept_time),
        finished_at=moment(message.finish_time),
        late=_late(message.late) if message.HasField("late") else None,
    )


def _late(message: task_pb2.LateWord) -> shapes.LateWord:
    return shapes.LateWord(
        outcome=message.outcome,
        heard_at=moment(message.hear_time),
        artifacts=[artifact(item) for item in message.artifacts],
        error=failure(message),
        cost_before=amount(message.cost_before),
    )


def uncertain_attempts(tasks: Iterable[task_pb2.Task]) -> Iterator[shapes.UncertainAttempt]:
    """The Attempts of these Tasks whose submission is not settled."""
    for message in tasks:
        for attempt in message.attempts:
            if attempt.state in OPEN_SUBMISSIONS:
                yield _uncertain(message, attempt)


def _uncertain(message: task_pb2.Task, attempt: task_pb2.Attempt) -> shapes.UncertainAttempt:
    return shapes.UncertainAttempt(
        id=attempt.id,
        task_id=message.id,
        run_id=message.run_id or None,
        tenant=message.tenant,
        number=attempt.number,
        supply=attempt.supply_id,
        channel=attempt.channel_id,
        state=word(task_pb2.AttemptState, attempt.state, "ATTEMPT_STATE_"),
        client_token=attempt.client_token,
        quote=amount(attempt.quote),
        submitted_at=moment(attempt.submit_time),
        reconcile_count=attempt.reconcile_count,
        uncertain_deadline=moment(attempt.uncertain_deadline_time),
    )


def selection(message: task_pb2.Selection) -> shapes.Selection:
    """One frozen decision."""
    return shapes.Selection(
        round=message.round,
        tier=message.tier or None,
        policy=shapes.PolicyRef(message.policy_id, message.policy_revision),
        baseline=amount(message.baseline),
        spent=amount(message.spent),
        candidates=[_candidate(item) for item in message.candidates],
        chosen=message.chosen_supply_id or None,
        steps=list(message.steps),
    )


def _candidate(message: task_pb2.CandidateFate) -> shapes.Candidate:
    return shapes.Candidate(
        supply=message.supply_id,
        tier=message.tier,
        fate=message.fate,
        rank=message.rank or None,
        step=message.step or None,
        reason=message.reason or None,
        figures=message.figures or None,
        quote=amount(message.quote),
        health=message.health or None,
        success_rate=message.success_rate if message.HasField("success_rate") else None,
        free_slots=message.free_slots if message.HasField("free_slots") else None,
        priority=message.priority,
    )


def alert(message: alert_pb2.Alert) -> alert_shapes.Alert:
    """One alert."""
    return alert_shapes.Alert(
        id=message.id,
        kind=message.kind,
        severity=message.severity,
        subject=message.subject,
        message=message.message,
        cause=message.cause or None,
        link=message.link or None,
        created_at=moment(message.create_time),
        acknowledged_at=moment(message.acknowledge_time),
        count=message.count,
        measure=_measure(message.measure) if message.HasField("measure") else None,
    )


def _measure(message: alert_pb2.Measure) -> alert_shapes.Measure:
    values = list(message.values)
    return alert_shapes.Measure(message.figure, message.unit, values[-1], message.baseline, message.trend, values)


def restores(message: restore_pb2.DeclareRestoredResponse) -> restore_shapes.Restores:
    """What is known of a database that was put back."""
    return restore_shapes.Restores(
        restores=[
            restore_shapes.Restore(moment(item.backup_time), moment(item.notice_time), moment(item.over_time))
            for item in message.restores
        ],
        tasks=message.task_count,
    )
