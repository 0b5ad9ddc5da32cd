"""RoutingService as its callers see it: over the loopback channel, with fakes behind it."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct

from libs.faults.fault import Fault
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.rpc.values import time_to_proto
from pointsman.routing.v1 import alert_pb2, task_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub, add_RoutingServiceServicer_to_server
from pointsman.routing.v1.tenant_budget_pb2 import TenantBudgetRequest
from services.routing.app.hear_late import hear_late
from services.routing.domain.decision import HealthView
from services.routing.domain.refusals import HealthCause
from services.routing.ports import Reconciled
from services.routing.servicer.routing import RoutingServicer
from tests.unit.routing.call_stage import call_stage
from tests.unit.routing.dispatch_fakes import Stage, stage

CALL_S = 10.0


class Door:
    """A stub whose failures are Faults, and the stage behind it."""

    def __init__(self, play: Stage, stub: Any) -> None:
        self.play = play
        self._stub = stub

    async def call(self, method: str, request: Any) -> Any:
        """One call."""
        async with faults_from_rpc():
            return await getattr(self._stub, method)(request, timeout=CALL_S)

    async def submit(self, task_id: str = "t1", **changes: Any) -> task_pb2.Task:
        """SubmitTask of model `clip`."""
        given = Struct()
        given.update({"prompt": "a boat", "duration_s": 5})
        fields = {"request_id": task_id, "tenant": "t", "model": "clip", "input": given, **changes}
        return (await self.call("SubmitTask", pb.SubmitTaskRequest(**fields))).task

    async def refused(self, method: str, request: Any) -> Fault:
        """The Fault of a call."""
        with pytest.raises(Fault) as caught:
            await self.call(method, request)
        return caught.value


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    """The service over loopback."""
    play = stage()
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    servicer = RoutingServicer(play.desk, call_stage().desk)
    server.add(lambda target: add_RoutingServiceServicer_to_server(servicer, target))
    await server.start()
    async with Channels(registry=registry, caller="runs") as channels:
        yield Door(play, RoutingServiceStub(channels.to("routing")))
    await server.close()


async def test_a_task_is_answered_as_it_was_handed_over(door: Door):
    """SEL-2, ATT-9: input with whole numbers, options and records come back; a repeated submission is the same Task."""
    deadline = time_to_proto(door.play.clock.now() + timedelta(hours=1))
    options = task_pb2.TaskOptions(
        degradation="strict", billing_mode="per_second", priority=task_pb2.PRIORITY_HIGH, deadline_time=deadline,
        supply_id="b/clip", max_attempts=1, hold_id="h1", stage=2, blocking=3, blocks_release=True,
    )  # fmt: skip
    task = await door.submit(options=options, run_id="r1", node_id="main")
    assert (task.id, task.run_id, task.node_id, task.tenant, task.kind) == ("t1", "r1", "main", "t", "video")
    assert task.state == task_pb2.TASK_STATE_QUEUED
    assert task.waiting_reason
    assert task.options == options
    assert task.input["duration_s"] == 5
    assert (await door.play.task()).request.input["duration_s"] == 5
    assert (await door.submit(options=options)).create_time == task.create_time
    assert task.cost.currency_code == "CNY"


async def test_a_finished_task_carries_result_attempts_and_rounds(door: Door):
    """SEL-16, SEL-24, COST-8: attempts with times and money, every Supply with its fate, limits, record, four steps."""
    await door.submit()
    await door.play.pass_time(4)
    task = (await door.call("GetTask", pb.GetTaskRequest(task_id="t1", tenant="t"))).task
    assert task.state == task_pb2.TASK_STATE_SUCCEEDED
    assert task.result.artifacts[0].media_type == "video/mp4"
    assert not task.result.HasField("degradation")
    assert task.result.profile == "933"
    attempt = task.attempts[0]
    assert attempt.state == task_pb2.ATTEMPT_STATE_SUCCEEDED
    assert attempt.submit_time.seconds <= attempt.accept_time.seconds <= attempt.finish_time.seconds
    assert (attempt.quote.units, attempt.cost.units, task.cost.units) == (1, 1, 1)
    assert not attempt.HasField("failure")
    rounds = (await door.call("ListSelections", pb.ListSelectionsRequest(task_id="t1"))).selections
    assert [(item.round, item.outcome, item.chosen_supply_id) for item in rounds] == [(1, "reserved", "a/clip")]
    assert [(fate.supply_id, fate.fate, fate.rank) for fate in rounds[0].candidates] == [
        ("a/clip", "chosen", 1),
        ("b/clip", "ranked", 2),
    ]
    assert rounds[0].policy_id == "stable"
    assert rounds[0].limits["absolute_cost_limit"] == "50.00"
    assert '"inputs"' in rounds[0].record_json
    explained = await door.call("ExplainTask", pb.ExplainTaskRequest(task_id="t1"))
    assert list(explained.steps) == list(rounds[0].steps)
    assert explained.story[0] == "The task was taken for model clip."


async def test_checking_creates_nothing(door: Door):
    """SEL-1, SEL-2, COST-9: validate_only answers faults or what it may cost, and no Task."""
    answer = await door.call(
        "SubmitTask", pb.SubmitTaskRequest(request_id="t1", tenant="t", model="clip", input={"prompt": "p"},
                                           validate_only=True)
    )  # fmt: skip
    assert not answer.HasField("task")
    assert (answer.estimate.worst_cost.units, answer.estimate.worst_cost.currency_code) == (2, "CNY")
    assert (answer.estimate.max_attempts, answer.estimate.unpriced_reason) == (2, "")
    bad = pb.SubmitTaskRequest(request_id="t1", tenant="t", model="clip", input={"prompt": 7}, validate_only=True)
    assert (await door.refused("SubmitTask", bad)).errors[0].pointer == "/input/prompt"
    assert (await door.refused("GetTask", pb.GetTaskRequest(task_id="t1"))).code == "not_found"


async def test_what_is_missing_is_named(door: Door):
    """ERR-2: every required field at once; unknown states and tokens too."""
    fault = await door.refused("SubmitTask", pb.SubmitTaskRequest())
    assert [error.pointer for error in fault.errors] == ["/request_id", "/tenant", "/model"]
    assert (await door.refused("ListTasks", pb.ListTasksRequest(states=[77]))).code == "validation_failed"
    assert (await door.refused("ListTasks", pb.ListTasksRequest(page_token="?"))).code == "malformed_request"
    assert (await door.refused("CancelTask", pb.CancelTaskRequest(task_id="x"))).code == "not_found"
    foreign = pb.GetTaskRequest(task_id="x", tenant="other")
    assert (await door.refused("GetTask", foreign)).code == "not_found"


async def test_lists_are_filtered_and_paged(door: Door):
    """ATT-6: states, tenants and uncertain Attempts; pages are complete."""
    door.play.provider.answers["a/clip"] = [None]
    for number in range(5):
        await door.submit(f"t{number}", tenant="x" if number else "y")
        door.play.clock.advance(0.1)
    await door.play.work()
    doubted = await door.call("ListTasks", pb.ListTasksRequest(with_uncertain_attempts=True))
    assert len(doubted.tasks) == 1
    assert doubted.tasks[0].attempts[0].HasField("uncertain_deadline_time")
    running = pb.ListTasksRequest(states=[task_pb2.TASK_STATE_RUNNING], page_size=3)
    first = await door.call("ListTasks", running)
    running.page_token = first.next_page_token
    second = await door.call("ListTasks", running)
    assert len({task.id for task in (*first.tasks, *second.tasks)}) == 4
    assert second.next_page_token == ""
    assert [task.id for task in (await door.call("ListTasks", pb.ListTasksRequest(tenant="y"))).tasks] == ["t0"]
    resolved = pb.ResolveAttemptRequest(attempt_id=doubted.tasks[0].attempts[0].id, resolution="not_accepted")
    assert (await door.call("ResolveAttempt", resolved)).task.attempts[0].state == task_pb2.ATTEMPT_STATE_NOT_ACCEPTED


async def test_a_cancel_is_told_at_once(door: Door):
    """ATT-8: the flag is in the answer; the end follows."""
    await door.submit()
    task = (await door.call("CancelTask", pb.CancelTaskRequest(task_id="t1", reason="enough"))).task
    assert task.cancel_requested
    await door.play.work()
    ended = (await door.call("GetTask", pb.GetTaskRequest(task_id="t1"))).task
    assert ended.state == task_pb2.TASK_STATE_CANCELLED


async def test_alerts_can_be_read(door: Door):
    """TIER-7: with subject, cause and a link to where more is to be seen."""
    door.play.provider.answers["a/clip"] = [None]
    await door.submit()
    door.play.provider.verdicts = []
    await door.play.work()
    door.play.clock.advance(1801)
    door.play.provider.ledger.clear()
    await door.play.work()
    alerts = (await door.call("ListAlerts", pb.ListAlertsRequest(kind="submission_unresolved"))).alerts
    assert [(alert.severity, alert.link, alert.count) for alert in alerts] == [("critical", "/v1/tasks/t1", 1)]
    assert (await door.call("ListAlerts", pb.ListAlertsRequest(subject="nobody"))).alerts == []
    (alert,) = alerts
    for _ in range(2):
        seen = (await door.call("AcknowledgeAlert", pb.AcknowledgeAlertRequest(alert_id=alert.id))).alert
        assert seen.HasField("acknowledge_time")
    still = (await door.call("ListAlerts", pb.ListAlertsRequest(open_only=True))).alerts
    assert [item.kind for item in still] == ["cost_anomaly"]
    assert (await door.refused("AcknowledgeAlert", pb.AcknowledgeAlertRequest(alert_id="x"))).code == "not_found"


async def test_a_refusal_for_health_names_its_event(door: Door):
    """SEL-24: the Channel's or the Supply's, at the revision that the round saw; without it while health is away."""
    health, clock = door.play.health, door.play.clock
    health.channels["a"] = HealthView("circuit_open", 2, 7, 0, cooldown_until=clock.now() + timedelta(seconds=60))
    health.causes["channel", "a", 7] = HealthCause(4, "opened", "key_invalid", "a9", clock.now())
    await door.submit()
    await door.play.work()
    asked = pb.ExplainTaskRequest(task_id="t1")
    told = await door.call("ExplainTask", asked)
    (refusal,) = told.refusals
    assert (refusal.round, refusal.supply_id, refusal.subject.id, refusal.state) == (1, "a/clip", "a", "circuit_open")
    assert (refusal.cause.kind, refusal.cause.reason, refusal.cause.attempt_id) == ("opened", "key_invalid", "a9")
    health.away = Fault.of("peer_unavailable", "gone")
    bare = await door.call("ExplainTask", asked)
    assert not bare.refusals[0].HasField("cause")
    assert bare.story == told.story
    health.channels["a"], health.away = HealthView("healthy", 3, 9), None
    health.supplies["a/clip"] = HealthView("disabled", 4, 3, 0)
    await door.submit("t2")
    await door.play.work()
    (refusal,) = (await door.call("ExplainTask", pb.ExplainTaskRequest(task_id="t2"))).refusals
    assert (refusal.subject.id, refusal.state, refusal.HasField("cause")) == ("a/clip", "disabled", False)


async def test_a_late_word_is_told_with_its_task(door: Door):
    """COST-12, ATT-6: outcome, files and both costs; the Task has ended and stays as it was."""
    door.play.provider.answers["a/clip"] = [None]
    door.play.provider.verdicts = [Reconciled("unknown")] * 100
    await door.submit()
    await door.play.work()
    door.play.clock.advance(1801)
    await door.play.work()
    asked = pb.GetTaskRequest(task_id="t1")
    before = (await door.call("GetTask", asked)).task
    assert not before.attempts[0].HasField("late")
    door.play.provider.verdicts = []
    door.play.clock.advance(60)
    await hear_late(door.play.desk)
    after = (await door.call("GetTask", asked)).task
    late = after.attempts[0].late
    assert (after.state, after.attempts[0].state) == (before.state, before.attempts[0].state)
    assert (late.outcome, len(late.artifacts), late.cost_before.units) == ("succeeded", 1, 1)
    assert after.attempts[0].cost.units == after.cost.units == 1


async def test_who_is_asked_about_tells_why_it_waits_now(door: Door):
    """ATT-10: a Task parked behind the head of its group tells the reason of this moment, though its own last look is
    long ago; while a peer is away it tells what it knew. Nothing is kept of it."""
    play = door.play
    offered = (await play.desk.catalog.current()).supplies
    for key in offered:
        for slot in range(offered[key].limits.concurrency):
            await play.capacity.reserve(f"{key} {slot}", offered[key], HealthView(), HealthView())
    await door.submit("behind")
    await play.work()
    kept = await play.task("behind")
    assert kept.waiting_reason.startswith("capacity: supply a/clip")

    async def told() -> str:
        return str((await door.call("GetTask", pb.GetTaskRequest(task_id="behind"))).task.waiting_reason)

    assert await told() == kept.waiting_reason
    for key in offered:
        play.health.supplies[key] = HealthView("circuit_open", epoch=1, revision=1, limit=0)
    assert (await told()).startswith("health: ")
    explained = await door.call("ExplainTask", pb.ExplainTaskRequest(task_id="behind"))
    assert "It waits now: health: " in explained.story[-1]
    play.capacity.away = Fault.of("governance_backend_down", "away")
    assert await told() == kept.waiting_reason
    play.capacity.away = None
    play.health.supplies.clear()
    await play.capacity.release("b/clip 0")
    assert await told() == kept.waiting_reason  # a gate may bind that no snapshot shows: only a reservation can tell
    assert await play.task("behind") == kept


async def test_who_waited_for_a_circuit_is_told_that_its_turn_comes(door: Door):
    """ATT-10: the circuit that a Task was parked for is closed by now, and who stands before it goes first."""
    play = door.play
    for key in (await play.desk.catalog.current()).supplies:
        play.health.supplies[key] = HealthView("circuit_open", epoch=1, revision=1, limit=0)
    await door.submit("behind")
    await play.work()
    play.health.supplies.clear()
    task = (await door.call("GetTask", pb.GetTaskRequest(task_id="behind"))).task
    assert task.waiting_reason.startswith("queue: supply a/clip has a place")


async def test_whoever_stands_above_raises_alerts_here(door: Door):
    """OPS-6: a budget's limit is an alert as any other, one while it is open; what operators do not know is refused."""
    raised = {"kind": "budget_hard_limit", "severity": "high", "subject": "b1", "message": "Spent.", "link": "/v1/x"}
    for words in ("Spent.", "Still spent."):
        await door.call("RaiseAlert", pb.RaiseAlertRequest(**raised | {"message": words}))
    await door.call("RaiseAlert", pb.RaiseAlertRequest(**raised, sort="attempts"))
    found = (await door.call("ListAlerts", pb.ListAlertsRequest(kind="budget_hard_limit", subject="b1"))).alerts
    assert sorted((alert.message, alert.count, alert.link) for alert in found) == [
        ("Spent.", 1, "/v1/x"), ("Still spent.", 2, "/v1/x"),
    ]  # fmt: skip
    fault = await door.refused("RaiseAlert", pb.RaiseAlertRequest(kind="news", severity="loud"))
    assert [error.pointer for error in fault.errors] == ["/subject", "/message", "/kind", "/severity"]


async def test_alerts_are_listed_by_their_consequence_with_what_was_measured(door: Door):
    """SLO-2, OPS-6: the newest is not the first; an open alert goes on measuring and tells where that goes; a measure
    without figures is refused by field."""
    dear = {"kind": "cost_drift", "severity": "high", "subject": "clip", "message": "Dear.", "sort": "cost"}
    await door.call("RaiseAlert", pb.RaiseAlertRequest(
        kind="release_hash_changed", severity="critical", subject="r1/release", message="Another picture."
    ))  # fmt: skip
    for value in (1.5, 2.0):
        measure = alert_pb2.Measure(figure="cost", unit="CNY", baseline=1, values=[value])
        await door.call("RaiseAlert", pb.RaiseAlertRequest(**dear, measure=measure))
    first, second = (await door.call("ListAlerts", pb.ListAlertsRequest())).alerts
    assert (first.kind, first.HasField("measure")) == ("release_hash_changed", False)
    assert (second.kind, second.count) == ("cost_drift", 2)
    assert second.measure == alert_pb2.Measure(figure="cost", unit="CNY", baseline=1, values=[1.5, 2.0], trend="rising")
    for wrong, pointers in (
        (alert_pb2.Measure(), ["/measure/figure", "/measure/unit", "/measure/values"]),
        (alert_pb2.Measure(figure="cost", unit="CNY", values=[1.0] * 21), ["/measure/values"]),
        (alert_pb2.Measure(figure="cost", unit="CNY", values=[float("nan")]), ["/measure"]),
    ):
        fault = await door.refused("RaiseAlert", pb.RaiseAlertRequest(**dear, measure=wrong))
        assert [error.pointer for error in fault.errors] == pointers


async def test_tasks_are_paused_and_go_on(door: Door):
    """RUN-8, ATT-10: any number at once, unknown ids left out, harmless to repeat; the reason says so."""
    await door.submit()
    for _ in range(2):
        await door.call("PauseTasks", pb.PauseTasksRequest(task_ids=["t1", "t1", "nobody"], paused=True))
    await door.play.pass_time(4)
    task = (await door.call("GetTask", pb.GetTaskRequest(task_id="t1"))).task
    assert task.state == task_pb2.TASK_STATE_QUEUED
    assert task.waiting_reason.startswith("pause:")
    await door.call("PauseTasks", pb.PauseTasksRequest(task_ids=["t1"]))
    await door.call("PauseTasks", pb.PauseTasksRequest())
    await door.play.pass_time(4)
    task = (await door.call("GetTask", pb.GetTaskRequest(task_id="t1"))).task
    assert task.state == task_pb2.TASK_STATE_SUCCEEDED
    many = pb.PauseTasksRequest(task_ids=[f"t{number}" for number in range(1001)], paused=True)
    refused = await door.refused("PauseTasks", many)
    assert [item.pointer for item in refused.errors] == ["/task_ids"]


async def test_the_budget_of_a_tenants_period_is_told(door: Door):
    """AUTH-2: none where there is no quota; whose and when must be said."""
    now = time_to_proto(door.play.clock.now())
    told = await door.call("TenantBudget", TenantBudgetRequest(tenant="t", origin_time=now))
    assert (told.budget_id, told.currency) == ("", "")
    refused = await door.refused("TenantBudget", TenantBudgetRequest())
    assert [item.pointer for item in refused.errors] == ["/tenant", "/origin_time"]
