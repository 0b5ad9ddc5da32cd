"""Tasks through real peers, a real database and the studio."""

from libs.rpc.faulting import faults_from_rpc
from pointsman.routing.v1 import routing_service_pb2, task_pb2
from tests.integration.routing.stack import CALL_S, Stack
from tests.support.waiting import eventually_async

SUCCEEDED = task_pb2.TASK_STATE_SUCCEEDED
FAILED = task_pb2.TASK_STATE_FAILED
ACCEPTED_STATES = (task_pb2.ATTEMPT_STATE_ACCEPTED, task_pb2.ATTEMPT_STATE_RUNNING)


async def free(stack: Stack) -> bool:
    """Whether no slot is in use."""
    return {level.in_use for level in (await stack.capacity()).values()} == {0}


def states(tasks: list[task_pb2.Task]) -> set[int]:
    """Their states."""
    return {task.state for task in tasks}


async def test_a_task_becomes_a_film(stack: Stack):
    """SEL-15, ATT-5: from SubmitTask to stored artifacts: one submission in the ledger, all slots free again."""
    await stack.apply({"aurora": 5, "boreal": 8})
    await stack.submit("t1")
    task = (await stack.ended("t1"))[0]
    assert task.state == SUCCEEDED, task
    assert task.result.artifacts[0].media_type == "video/mp4"
    assert task.cost.units == 4
    assert len(await stack.submissions()) == 1
    await eventually_async(lambda: free(stack))
    asked = routing_service_pb2.ListSelectionsRequest(task_id="t1")
    rounds = (await stack.routing.ListSelections(asked, timeout=CALL_S)).selections
    assert [item.outcome for item in rounds] == ["reserved"]
    assert {fate.supply_id for fate in rounds[0].candidates} == {"aurora-main/clip", "boreal-main/clip"}
    story = await stack.routing.ExplainTask(routing_service_pb2.ExplainTaskRequest(task_id="t1"), timeout=CALL_S)
    assert len(story.steps) == 4


async def test_a_burst_uses_every_slot_and_no_more(stack: Stack):
    """CAP-10: 16 Tasks on 5 + 8 slots: never more than that at once, all end, each paid for once."""
    await stack.apply({"aurora": 5, "boreal": 8})
    for account in ("aurora", "boreal"):
        await stack.lab("POST", f"/accounts/{account}", {"render_s": 4.0})
    names = [f"t{number:02}" for number in range(16)]
    for name in names:
        await stack.submit(name)
    highest = {"aurora-main/clip": 0, "boreal-main/clip": 0}

    async def all_ended() -> bool:
        levels = await stack.capacity()
        for supply in highest:
            highest[supply] = max(highest[supply], levels[supply].in_use)
        return all(task.state == SUCCEEDED for task in await stack.tasks())

    await eventually_async(all_ended, 60)
    assert highest["aurora-main/clip"] <= 5
    assert highest["boreal-main/clip"] <= 8
    assert sum(highest.values()) == 13
    tokens = [item["client_token"] for item in await stack.submissions()]
    assert len(tokens) == len(set(tokens)) == 16
    await eventually_async(lambda: free(stack))


async def test_a_failing_model_is_left_and_its_breaker_opens(stack: Stack):
    """ATT-1, TIER-7: 500s switch to the other account; the circuit opens, capacity hears of it, an operator too."""
    await stack.apply({"aurora": 8, "boreal": 5}, order="manual_priority")
    await stack.script(*[{"status": 500}] * 3, account="aurora")
    for number in range(3):
        await stack.submit(f"t{number}")
        task = (await stack.ended(f"t{number}"))[0]
        assert task.state == SUCCEEDED
        assert [item.supply_id for item in task.attempts] == ["aurora-main/clip", "boreal-main/clip"]
        assert task.attempts[0].failure.code == "provider_error"

    async def told() -> bool:
        return [alert.subject for alert in await stack.alerts("breaker_opened")] == ["aurora-main/clip"]

    await eventually_async(told)
    assert (await stack.capacity())["aurora-main/clip"].health.limit in (0, 1)  # 1 once its second is over


async def test_a_revoked_key_sends_everybody_elsewhere(stack: Stack):
    """ATT-2, HLT-8: 401 is the Channel's failure: the Task switches and the whole account is closed at once."""
    await stack.apply({"aurora": 8, "boreal": 5})
    (stack.folder / "aurora").write_text("no-longer-a-key")
    await stack.submit("t1")
    task = (await stack.ended("t1"))[0]
    assert task.state == SUCCEEDED
    assert [(item.channel_id, item.failure.code) for item in task.attempts] == [
        ("aurora-main", "key_invalid"),
        ("boreal-main", ""),
    ]

    async def closed() -> bool:
        return (await stack.health())["aurora-main"].reason == "key_invalid" or bool(
            await stack.alerts("breaker_opened")
        )

    await eventually_async(closed)


async def test_a_moderation_refusal_harms_nobody(stack: Stack):
    """ATT-2, HLT-5: no switch, no cost, no mark on health."""
    await stack.apply({"aurora": 5, "boreal": 8})
    await stack.submit("t1", prompt="[moderated] a boat")
    task = (await stack.ended("t1"))[0]
    assert task.state == FAILED
    assert task.failure.code == "content_rejected"
    assert len(task.attempts) == 1
    assert {item.samples for item in (await stack.health()).values()} == {0}
    assert await stack.submissions() == []


async def test_a_lost_answer_is_found_without_a_second_submission(stack: Stack):
    """ATT-6: the provider accepts and the answer is lost: uncertain, found in its list, followed to the film."""
    await stack.apply({"aurora": 5})
    await stack.script({"accept_then_drop": True}, account="aurora")
    await stack.submit("t1")

    async def uncertain() -> bool:
        asked = routing_service_pb2.ListTasksRequest(with_uncertain_attempts=True)
        return len((await stack.routing.ListTasks(asked, timeout=CALL_S)).tasks) == 1

    await eventually_async(uncertain)
    assert (await stack.task("t1")).waiting_reason.startswith("uncertain: ")
    task = (await stack.ended("t1"))[0]
    assert task.state == SUCCEEDED, task
    assert len(task.attempts) == 1
    assert len(await stack.submissions()) == 1


async def test_a_cancel_reaches_the_provider(stack: Stack):
    """ATT-8: a running Task is stopped at its provider or finishes first; either way it ends and its slot is free."""
    await stack.apply({"aurora": 5})
    await stack.submit("t1")

    async def accepted() -> bool:
        attempts = (await stack.task("t1")).attempts
        return bool(attempts) and attempts[0].state in ACCEPTED_STATES

    await eventually_async(accepted)
    asked = routing_service_pb2.CancelTaskRequest(task_id="t1", reason="test")
    async with faults_from_rpc():
        assert (await stack.routing.CancelTask(asked, timeout=CALL_S)).task.cancel_requested
    task = (await stack.ended("t1"))[0]
    assert task.state in (task_pb2.TASK_STATE_CANCELLED, SUCCEEDED)
    await eventually_async(lambda: free(stack))


async def test_a_watcher_sees_every_state_until_the_end(stack: Stack):
    """ATT-9: WatchTask ends with the Task."""
    await stack.apply({"aurora": 5})
    await stack.submit("t1")
    seen = []
    async for answer in stack.routing.WatchTask(routing_service_pb2.WatchTaskRequest(task_id="t1"), timeout=CALL_S):
        seen.append(answer.task.state)
    assert seen[-1] == SUCCEEDED
    assert seen == sorted(seen)


async def test_a_restart_in_the_middle_submits_nothing_twice(stack: Stack):
    """ATT-5, ATT-7: contexts stopped during a burst and started on the same data: honest ends, no token sent twice."""
    await stack.apply({"aurora": 5, "boreal": 8})
    await stack.script(*[{"slow_s": 0.5, "ok": True}] * 4, account="aurora")
    names = [f"t{number:02}" for number in range(12)]
    for name in names:
        await stack.submit(name)

    async def begun() -> bool:
        return len(await stack.submissions()) >= 3

    await eventually_async(begun)
    await stack.restart()
    tasks = await stack.ended(*names, within_s=60)
    assert states(tasks) == {SUCCEEDED}
    tokens = [item["client_token"] for item in await stack.submissions()]
    assert len(tokens) == len(set(tokens))
    assert len(tokens) == sum(len(task.attempts) for task in tasks)
    await eventually_async(lambda: free(stack))
