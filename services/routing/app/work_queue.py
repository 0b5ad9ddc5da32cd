"""Claims due Tasks and runs their steps, many at once, as one lane of one process.

A step whose claim is lost, or cannot be prolonged before it lapses, is ended: whoever takes over asks the provider's
records, and a submission that was still under way here could prove them wrong (ATT-7, SEL-25).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.domain.task import Task
from services.routing.ports import Lane

StepRunner = Callable[[Desk, Task], Awaitable[None]]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _InHand:
    """A step and the claim it works under; `held_until` is by this process's monotonic clock."""

    epoch: int
    step: asyncio.Task[None]
    held_until: float


class WorkQueue:
    """One lane. `scan` and `prolong` are ticks; `drain` ends what is in hand."""

    def __init__(
        self,
        desk: Desk,
        lane: Lane,
        concurrency: int,
        perform: StepRunner,
        per_s: float = float("inf"),
        aside: Callable[[], int] = lambda: 0,
    ) -> None:
        """`concurrency` steps at once, those `aside` not counted; at most `per_s` begin in a second, of which a
        second's worth may be saved up."""
        self._aside = aside
        self._desk = desk
        self._per_s = per_s
        self._allowed = per_s
        self._counted_at = desk.world.clock.monotonic()
        self._lane = lane
        self._concurrency = concurrency
        self._perform = perform
        self._running: dict[str, _InHand] = {}

    @property
    def in_hand(self) -> int:
        """Steps that run now."""
        return len(self._running)

    async def scan(self) -> bool:
        """Claim what is due, as far as there is room, and begin its steps. True when there may be more."""
        places = self._concurrency + self._aside() - len(self._running)
        room = min(places, self._desk.settings.claim_batch, self._allowance())
        if room <= 0:
            return False
        now, until, held_until = self._desk.now(), *self._lease()
        tasks = await self._desk.store.claim(self._lane, self._desk.worker, room, now, until)
        for task in tasks:
            if task.id in self._running:  # its claim lapsed unprolonged, and this very process takes over from itself
                self._abandon((task.id,))
            step = asyncio.ensure_future(self._step(task))
            self._running[task.id] = _InHand(task.epoch, step, held_until)
        self._allowed -= len(tasks)
        return len(tasks) == room

    def _allowance(self) -> int:
        """How many steps may begin now."""
        if self._per_s == float("inf"):
            return self._concurrency
        now = self._desk.world.clock.monotonic()
        self._allowed = min(self._per_s, self._allowed + (now - self._counted_at) * self._per_s)
        self._counted_at = now
        return int(self._allowed)

    async def prolong(self) -> None:
        """Prolong the claims in hand: a living worker keeps its Tasks, a dead one's lapse (ATT-7)."""
        asked = dict(self._running)
        if not asked:
            return
        until, held_until = self._lease()
        try:
            lost = await self._desk.store.prolong([(name, held.epoch) for name, held in asked.items()], until)
        except Fault:
            now = self._desk.world.clock.monotonic()
            self._abandon(name for name, held in asked.items() if held.held_until <= now)
            raise
        for name in asked.keys() - lost:
            asked[name].held_until = held_until
        self._abandon(name for name in lost if self._running.get(name) is asked[name])

    def _lease(self) -> tuple[datetime, float]:
        """The end of a claim that begins now, as others read it and by the clock that never jumps."""
        lease_s = self._desk.settings.worker_lease_s
        return self._desk.in_s(lease_s), self._desk.world.clock.monotonic() + lease_s

    def _abandon(self, task_ids: Iterable[str]) -> None:
        for task_id in task_ids:
            if task_id in self._running:  # else it ended meanwhile
                log.warning("the claim of task %s is lost; its step ends, whoever takes over goes on", task_id)
                self._running[task_id].step.cancel()

    async def settled(self) -> None:
        """Return when no step is in hand."""
        while self._running:
            await asyncio.wait([held.step for held in self._running.values()])

    async def drain(self) -> None:
        """Let the steps in hand finish within `drain_s`; cancel the others, whose states say how they go on."""
        late = {held.step for held in self._running.values()}
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
            held = self._running.get(task.id)
            if held is not None and held.epoch == task.epoch:  # else claimed anew by this very process
                del self._running[task.id]
            self._desk.bell.ring()
