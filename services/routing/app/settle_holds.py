"""Settles Holds that somebody forgot: whose process died between the end of a Task or call and its settlement."""

from datetime import timedelta

from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.desk import Desk
from services.routing.app.funds import CALL, TASK
from services.routing.domain.calls.call import CallState
from services.routing.domain.spending import settled_cost
from services.routing.ports import TaskQuery
from services.routing.ports.ledger import OpenHold

PAGE = 100
LOST_AFTER = timedelta(minutes=10)
"""A Hold of a call of which nothing is on record is given back then: no call lives so long before its first try."""


class SettleHolds:
    """Walks over all open Holds of routing, a page at a time, again and again. Several processes may do so at once."""

    def __init__(self, desk: Desk, calls: CallDesk) -> None:
        self._desk = desk
        self._calls = calls
        self._at = {TASK: "", CALL: ""}

    async def __call__(self) -> bool:
        """One page of each sort. True when there are more."""
        more = False
        for prefix, end in ((TASK, self._tasks), (CALL, self._call_holds)):
            found = await self._desk.funds.open_holds(prefix, self._at[prefix], PAGE)
            self._at[prefix] = found[-1].id if len(found) == PAGE else ""
            more = more or bool(self._at[prefix])
            if found:
                await end([item for item in found if item.taken_at <= self._desk.now()])
        return more

    async def _tasks(self, found: list[OpenHold]) -> None:
        ids = tuple(item.id.removeprefix(TASK) for item in found)
        tasks, _ = await self._desk.store.find(TaskQuery(task_ids=ids, page_size=max(1, len(ids))))
        for task in tasks if ids else ():
            if settled_cost(task) is not None:
                await self._desk.funds.settle_task(task)

    async def _call_holds(self, found: list[OpenHold]) -> None:
        for item in found:
            known = await self._calls.store.get(item.id.removeprefix(CALL))
            if known is not None and known[0].state is not CallState.RUNNING:
                await self._desk.funds.settle_call(known[0])
            elif known is None and item.taken_at < self._desk.now() - LOST_AFTER:
                await self._desk.funds.give_up(item.id, "nothing was sent")
