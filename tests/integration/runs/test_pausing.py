"""Pause and resume from a Run down to the provider, over real peers, a real database and the studio."""

from pathlib import Path
from typing import Any

from google.protobuf.struct_pb2 import Struct

from libs.rpc.faulting import faults_from_rpc
from pointsman.runs.v1 import run_pb2
from pointsman.runs.v1 import runs_service_pb2 as pb
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceStub
from tests.integration.routing.stack import CALL_S, Stack, stack_over
from tests.support.waiting import eventually_async

SUCCEEDED, PAUSED = run_pb2.RUN_STATE_SUCCEEDED, run_pb2.RUN_STATE_PAUSED


class Runs:
    """Runs of the stack's one model."""

    def __init__(self, stack: Stack) -> None:
        self._stub: Any = RunsServiceStub(stack.host.channels.to("runs"))

    async def call(self, method: str, request: Any) -> Any:
        """One call; its Run."""
        async with faults_from_rpc():
            return (await getattr(self._stub, method)(request, timeout=CALL_S)).run

    async def create(self, prompt: str) -> str:
        """A new one; its id."""
        given = Struct()
        given.update({"prompt": prompt, "duration_s": 4})
        return str((await self.call("CreateRun", pb.CreateRunRequest(tenant="t", model="clip", input=given))).id)

    async def get(self, run_id: str) -> run_pb2.Run:
        """The Run now."""
        found: run_pb2.Run = await self.call("GetRun", pb.GetRunRequest(run_id=run_id, tenant="t"))
        return found

    async def in_state(self, run_id: str, state: int) -> None:
        """Return once it is."""

        async def arrived() -> bool:
            return (await self.get(run_id)).state == state

        await eventually_async(arrived, 30)

    async def waits_for(self, run_id: str, reason: str) -> None:
        """Return once its node waits for that."""

        async def waits() -> bool:
            return (await self.get(run_id)).nodes[0].waiting_reason.startswith(reason)

        await eventually_async(waits, 30)


async def test_a_paused_run_goes_to_no_provider_until_it_is_resumed(pg_url: str, tmp_path: Path):
    """RUN-1a, RUN-8: with the supply full, one Run waits and is paused. The slot comes free, whoever stood behind takes
    it, and nothing of the paused Run was submitted. Resumed, it goes on. A repeated pause does not undo that."""
    async with stack_over(pg_url, tmp_path, above=("runs",)) as stack:
        runs = Runs(stack)
        await stack.apply({"aurora": 1})
        await stack.lab("POST", "/accounts/aurora", {"render_s": 2.0})
        first = await runs.create("first")
        await runs.in_state(first, run_pb2.RUN_STATE_RUNNING)
        await eventually_async(lambda: submitted(stack, 1))
        held = await runs.create("held")
        await runs.waits_for(held, "capacity:")
        pause = pb.PauseRunRequest(run_id=held, tenant="t", request_id="p1")
        assert (await runs.call("PauseRun", pause)).state == PAUSED
        behind = await runs.create("behind")
        for run_id in (first, behind):
            await runs.in_state(run_id, SUCCEEDED)
        task = await stack.task((await runs.get(held)).nodes[0].task_id)
        assert (len(await stack.submissions()), list(task.attempts)) == (2, [])
        assert task.waiting_reason.startswith("pause:")
        await runs.call("ResumeRun", pb.ResumeRunRequest(run_id=held, tenant="t", request_id="r1"))
        assert (await runs.call("PauseRun", pause)).state != PAUSED
        await runs.in_state(held, SUCCEEDED)
        assert len(await stack.submissions()) == 3


async def submitted(stack: Stack, count: int) -> bool:
    """Whether the studio has accepted so many jobs."""
    return len(await stack.submissions()) == count
