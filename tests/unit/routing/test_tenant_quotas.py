"""Quotas of Runs over fakes: who waits for a tenant's own quota, who does not, and whom nobody lets in."""

import asyncio
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.routing.app.present_reason import with_present_reason
from services.routing.app.submit_task import Submission, check_task, submit_task
from services.routing.domain.catalog import Tenant
from services.routing.domain.request import Request
from services.routing.domain.task import TaskState
from services.routing.ports import Polled
from tests.unit.routing.dispatch_fakes import Stage, stage
from tests.unit.routing.dispatch_offers import MODEL, catalog, supply


def bounded(**quotas: int) -> Stage:
    """A stage on which tenant `t` has these quotas, and one supply has twenty slots."""
    play = stage(offers=catalog(supply("a/clip", slots=20), tenants={"t": Tenant("t", 1, quotas=quotas)}))
    play.provider.polls = [Polled("running")] * 1000
    return play


def order(task_id: str, run_id: str = "", tenant: str = "t") -> Submission:
    """A clip."""
    return Submission(task_id, Request(tenant, MODEL, {"prompt": "p", "duration_s": 5}), run_id or f"run-{task_id}")


async def states(play: Stage, *task_ids: str) -> list[TaskState]:
    """Where those Tasks stand."""
    return [(await play.task(task_id)).state for task_id in task_ids]


async def test_runs_with_providers_are_bounded():
    """AUTH-2, RUN-1a: of five Runs two go to providers; the others wait with the reason, and take the places."""
    play = bounded(running_runs=2)
    for number in range(5):
        await submit_task(play.desk, order(f"t{number}"))
    await submit_task(play.desk, order("u", tenant="other"))
    await play.work()
    await play.pass_time(2)
    assert await states(play, "t0", "t1", "t2", "u") == [TaskState.RUNNING] * 2 + [TaskState.QUEUED, TaskState.RUNNING]
    waiting = await play.task("t2")
    assert waiting.waiting_reason == "quota: 2 of 2 runs of the tenant are with providers"
    assert waiting.parked
    assert (await with_present_reason(play.desk, waiting)).waiting_reason == waiting.waiting_reason
    assert await play.desk.store.rounds("t2") == (), "nobody was asked, so there is no round"
    assert len(play.provider.ledger) == 3
    play.provider.polls = []
    await play.pass_time(60)
    assert await states(play, *(f"t{number}" for number in range(5))) == [TaskState.SUCCEEDED] * 5


async def test_a_run_that_is_there_may_send_more():
    """RUN-1a: the quota bounds Runs: a further Task of a Run that is there is not held back, another Run is."""
    play = bounded(running_runs=1)
    for task_id, run_id in (("a1", "A"), ("a2", "A"), ("b1", "B")):
        await submit_task(play.desk, order(task_id, run_id))
    await play.work()
    await play.pass_time(2)
    assert await states(play, "a1", "a2", "b1") == [TaskState.RUNNING, TaskState.RUNNING, TaskState.QUEUED]


async def test_a_second_replica_sees_what_was_committed():
    """AUTH-2: what one replica has sent, another counts."""
    play = bounded(running_runs=1)
    await submit_task(play.desk, order("t1"))
    await play.work()
    other = stage(like=play, worker="worker-2")
    await submit_task(other.desk, order("t2"))
    await other.work()
    assert (await play.task("t2")).waiting_reason.startswith("quota:")


async def test_who_waits_for_its_quota_ends_with_its_time():
    """ATT-3: a Task whose window closes while its tenant's quota is full fails with quota_exceeded."""
    play = bounded(running_runs=1)
    await submit_task(play.desk, order("t1"))
    await play.work()
    await submit_task(play.desk, order("t2"))
    await play.pass_time(1260, step_s=30)
    failed = await play.task("t2")
    assert failed.state is TaskState.FAILED
    assert failed.failure is not None
    assert failed.failure.code == "quota_exceeded"


async def refused(play: Stage, task_id: str = "", **given: Any) -> bool:
    """Whether one more Run is refused for the quota, a Run of its own or that of a Task."""
    try:
        await check_task(play.desk, order(task_id, run_id=f"run-{task_id or play.desk.world.ids.ulid()}", **given))
    except Fault as fault:
        return fault.code == "quota_exceeded" and fault.retryable
    return False


async def test_runs_that_wait_are_bounded():
    """AUTH-2: as many Runs may wait as the quota says, those counted that were let in and have not come yet."""
    play = bounded(queued_runs=2)
    assert [await refused(play, task_id) for task_id in ("t1", "t2", "t3")] == [False, False, True]
    assert not await refused(play, tenant="other")
    for task_id in ("t1", "t2"):
        await submit_task(play.desk, order(task_id))
    assert await refused(play)
    await play.work()
    assert await states(play, "t1", "t2") == [TaskState.RUNNING] * 2
    assert not await refused(play), "who is with a provider does not wait"
    assert not await refused(play)
    assert await refused(play)
    await play.pass_time(6)
    assert not await refused(play), "who was let in and has not come never will"


async def test_a_run_of_many_tasks_waits_once():
    """AUTH-2, RUN-1a: whatever a production asks about beforehand, at once too, is one Run towards the quota."""
    play = bounded(queued_runs=1)
    assert await asyncio.gather(*(refused(play, "big") for _ in range(20))) == [False] * 20
    assert not await refused(play, "big")
    assert await refused(play, "next")


@pytest.mark.parametrize("quotas", [{}, {"queued_runs": 0, "running_runs": 0}])
async def test_no_quota_asks_nobody(quotas: dict[str, int]):
    """AUTH-2: 0, or no number, is no quota."""
    play = bounded(**quotas)
    for number in range(3):
        assert not await refused(play)
        await submit_task(play.desk, order(f"t{number}"))
    await play.work()
    assert await states(play, "t0", "t1", "t2") == [TaskState.RUNNING] * 3
