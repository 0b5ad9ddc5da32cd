"""Claims due Tasks and runs their steps, many at once, as one lane of one process."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.domain.task import Task
from services.routing.ports import Lane

StepRunner = Callable[[Desk, Task], Awaitable[None]]

log = logging.getLogger(__name__)


class WorkQueue:
    """One lane. `scan` and `prolong` are ticks; `drain` ends what is in hand."""

    def __init__(self, desk: Desk, lane: Lane, concurrency: int, perform: StepRunner) -> None:
        self._desk = desk
        self._lane = lane
        self._concurrency = concurrency
        self._perform = perform
        self._running: dict[str, tuple[int, asyncio.Task[None]]] = {}

    @property
    def in_hand(self) -> int:
        """Steps that run now."""
        return len(self._running)

    async def scan(self) -> bool:
        """Claim what is due, as far as there is room, and begin its steps. True when there may be more."""
        room = min(self._concurrency - len(self._running), self._desk.settings.claim_batch)
        if room <= 0:
            return False
        now, until = self._desk.now(), self._desk.in_s(self._desk.settings.worker_lease_s)
        tasks = await self._desk.store.claim(self._lane, self._desk.worker, room, now, until)
        for task in tasks:
            step = asyncio.ensure_future(self._step(task))
            self._running[task.id] = (task.epoch, step)
        return len(tasks) == room

    async def prolong(self) -> None:
        """Prolong the claims in hand: a living worker keeps its Tasks, a dead one's lapse (ATT-7)."""
        claims = [(task_id, epoch) for task_id, (epoch, _) in self._running.items()]
        if not claims:
            return
        until = self._desk.in_s(self._desk.settings.worker_lease_s)
        for task_id in await self._desk.store.prolong(claims, until):
            if task_id in self._running:  # else it ended meanwhile
                log.warning("task %s was taken over; what this process still writes of it changes nothing", task_id)

    async def settled(self) -> None:
        """Return when no step is in hand."""
        while self._running:
            await asyncio.wait([step for _, step in self._running.values()])

    async def drain(self) -> None:
        """Let the steps in hand finish within `drain_s`; cancel the others, whose states say how they go on."""
        late = {step for _, step in self._running.values()}
        left_s = self._desk.settings.drain_s
        while late and left_s > 0:
            await self._prolong_while_draining()
            pause_s = min(left_s, self._desk.settings.heartbeat_s)
            _, late = await asyncio.wait(late, timeout=pause_s)
            left_s -= pause_s
        for step in late:
            step.cancel()
        if late:
            log.warning("%d steps did not finish while draining", len(late))
            await asyncio.wait(late)

    async def _prolong_while_draining(self) -> None:
        """The tick that prolongs has stopped by now, and what is being submitted must not be doubted by others."""
        try:
            await self.prolong()
        except Fault as fault:
            log.warning("claims are not prolonged while draining: %s", fault)

    async def _step(self, task: Task) -> None:
        try:
            await self._perform(self._desk, task)
        finally:
            if self._running.get(task.id, (0, None))[0] == task.epoch:  # else claimed anew by this very process
                del self._running[task.id]
            self._desk.bell.ring()
