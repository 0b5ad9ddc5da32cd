"""The two ticks that carry every live Run on: hand new ones to routing, and follow those under way.

Recovery is the same road: `pending` is submitted again (one Task, whatever crashed in between), `running` is followed
again. A cancel is a flag that both ticks read: whoever handed a Task over while it came passes it on. No transaction is
open while routing is asked; a write that finds a newer revision is dropped, because whoever wrote it did the same work.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.runs.app.hub import Hub
from services.runs.domain import engine
from services.runs.domain.engine import Change
from services.runs.domain.run import Failure, Run, RunState
from services.runs.ports import Routing, Runs

BATCH = 200
T = TypeVar("T")

log = logging.getLogger(__name__)


class Advance:
    """Both ticks over one store."""

    def __init__(self, runs: Runs, routing: Routing, hub: Hub, world: World) -> None:
        self._runs = runs
        self._routing = routing
        self._hub = hub
        self._world = world

    async def submit_pending(self) -> bool:
        """Hand every pending Run to routing, oldest first; True when some were handed over."""
        handed = False
        async for batch in self._batches(RunState.PENDING):
            for run in batch:
                handed = await self._submit(run) or handed
        return handed

    async def follow_running(self) -> None:
        """See how every running Run's Task stands, and pass cancels on."""
        async for batch in self._batches(RunState.RUNNING):
            tasks = await self._routing.tasks([run.node.task_id for run in batch])
            for run in batch:
                task = tasks.get(run.node.task_id)
                if task is None:
                    log.error("run_without_task", extra={"run_id": run.id, "task_id": run.node.task_id})
                    continue
                await self._save(run, engine.followed(run, task, self._world.clock.now()))
                if run.cancel_requested and task.state not in engine.TASK_ENDS:
                    await self._quietly(run, self._routing.cancel, run.node.task_id)

    async def _submit(self, listed: Run) -> bool:
        now = self._world.clock.now
        # The list was read before the Runs ahead of this one were handed over: a cancel may have come since.
        run = await self._runs.get(listed.id)
        if run is None or run.state is not RunState.PENDING:
            return False
        if run.cancel_requested:
            return await self._stop(run)
        try:
            await self._routing.submit(run)
        except Fault as fault:
            if fault.retryable or fault.code in {"internal", "deadline_exceeded", "cancelled"}:
                log.warning("run_not_submitted", extra={"run_id": run.id, "code": fault.code})
                return False
            failure = Failure(fault.category, fault.scope, fault.retryable, fault.code, fault.message)
            return await self._save(run, engine.refused(run, failure, now()))
        return await self._save(run, engine.started(run, now())) or await self._overtaken(run)

    async def _overtaken(self, submitted: Run) -> bool:
        """Somebody wrote while the Task was handed over: another replica, or a cancel, which holds for the Task."""
        run = await self._runs.get(submitted.id)
        if run is None or not run.cancel_requested:
            return False
        if run.state is RunState.PENDING:
            return await self._stop(run)
        await self._quietly(run, self._routing.cancel, run.node.task_id)
        return False

    async def _stop(self, run: Run) -> bool:
        """A cancel before the start: ends the Run once its Task has ended unsent, else leaves the end to it (ATT-8).

        An earlier process may have handed the Task over and died before it could say so; one that stands still may yet
        do it. So a Task that routing does not know is handed over as cancelled: whoever comes later finds it ended.
        """
        now = self._world.clock.now()
        try:
            known = await self._routing.tasks([run.node.task_id])
        except Fault as fault:
            log.warning("run_call_failed", extra={"run_id": run.id, "code": fault.code})
            return False
        task = known.get(run.node.task_id)
        if task is None:
            await self._quietly(run, self._routing.withdraw, run)
            return False
        if task.state == "cancelled" and not task.attempts:
            return await self._save(run, engine.cancelled_before_start(run, now))
        saved = await self._save(run, engine.started(run, now))
        await self._quietly(run, self._routing.cancel, run.node.task_id)
        return saved

    async def _save(self, before: Run, change: Change) -> bool:
        after, drafts = change
        if after == before and not drafts:
            return False
        saved = await self._runs.save(after, drafts, self._world.clock.now())
        if saved is None:
            return False
        await self._hub.tell(saved.id, saved.last_sequence)
        return True

    async def _quietly(self, run: Run, call: Callable[[T], Awaitable[None]], argument: T) -> None:
        """One Run's trouble must not hold up the others; the next tick tries again."""
        try:
            await call(argument)
        except Fault as fault:
            log.warning("run_call_failed", extra={"run_id": run.id, "code": fault.code})

    async def _batches(self, state: RunState) -> AsyncIterator[Sequence[Run]]:
        after = ""
        while batch := await self._runs.live([state], after, BATCH):
            yield batch
            after = batch[-1].id
