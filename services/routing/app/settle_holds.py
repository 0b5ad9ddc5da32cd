"""Settles Holds that somebody forgot: whose process died between the end of a Task or call and its settlement."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial

from libs.kernel.money import Money
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.desk import Desk
from services.routing.app.funds import CALL, SHARED, TASK, quietly
from services.routing.domain.calls.call import spent_in
from services.routing.domain.spending import settled_cost
from services.routing.domain.task import TERMINAL_TASKS
from services.routing.ports import TaskQuery
from services.routing.ports.ledger import OpenHold

PAGE = 100
LOST_AFTER = timedelta(minutes=10)
"""A Hold of a call of which nothing is on record is given back then, or when no call may be under way any more: its
first try comes before that."""
LAG = timedelta(minutes=1)
"""The ledger's clock and those of the records differ by less."""
ENDS = tuple(sorted(state.value for state in TERMINAL_TASKS))


class SettleHolds:
    """Walks over all open Holds of routing, a page at a time, again and again: a question to the ledger and one to the
    records for each page. Several processes may do so at once."""

    def __init__(self, desk: Desk, calls: CallDesk) -> None:
        self._desk = desk
        self._calls = calls
        self._lost_after = max(LOST_AFTER, timedelta(seconds=desk.settings.capacity_ttl_max_s))
        self._at = {TASK: "", CALL: "", SHARED: ""}

    async def __call__(self) -> bool:
        """One page of each sort. True when there are more."""
        await self._calls.holds.settle_shared()
        await self._desk.funds.lower_limits()
        more = False
        for prefix, end in ((TASK, self._tasks), (CALL, self._call_holds), (SHARED, self._shared_holds)):
            found = await self._desk.funds.open_holds(prefix, self._at[prefix], PAGE)
            self._at[prefix] = found[-1].id if len(found) == PAGE else ""
            more = more or bool(self._at[prefix])
            if found:
                await end([item for item in found if item.taken_at <= self._desk.now()])
        return more

    async def _tasks(self, found: list[OpenHold]) -> None:
        ids = tuple(item.id.removeprefix(TASK) for item in found)
        if not ids:
            return
        tasks, _ = await self._desk.store.find(TaskQuery(task_ids=ids, states=ENDS, page_size=len(ids)))
        settle = self._desk.funds.settle_task
        await _all({TASK + task.id: partial(settle, task) for task in tasks if settled_cost(task) is not None})

    async def _call_holds(self, found: list[OpenHold]) -> None:
        funds, store = self._desk.funds, self._calls.store
        ended = await store.ended([item.id.removeprefix(CALL) for item in found])
        await _all({CALL + call.id: partial(funds.settle_call, call) for call in ended})
        over, lost_before = {CALL + call.id for call in ended}, self._desk.now() - self._lost_after
        for item in found:
            lost = item.id not in over and item.taken_at < lost_before
            if lost and await store.get(item.id.removeprefix(CALL)) is None:
                await funds.give_up(item.id, "nothing was sent")

    async def _shared_holds(self, found: list[OpenHold]) -> None:
        """Those whose process died, or does not know what became of one of the calls: what the records say of all."""
        funds, lost_before = self._desk.funds, self._desk.now() - self._lost_after
        for item in found:
            if item.taken_at >= lost_before:
                continue  # no call may be under way by then that has drawn on it and left no record yet
            calls = await self._calls.store.paid_by(item.id, item.taken_at - LAG)
            if calls is None:
                continue
            tries = sum(len(call.tries) for call in calls)
            cost = sum((spent_in(call.tries, item.currency) for call in calls), Money.zero(item.currency))
            await quietly(partial(funds.settle_shared, item.id, cost, tries, len(calls)), item.id)


async def _all(settlements: Mapping[str, Callable[[], Awaitable[object]]]) -> None:
    """Together; one that the ledger refuses keeps no other from it."""
    await asyncio.gather(*(quietly(settle, hold) for hold, settle in settlements.items()))
