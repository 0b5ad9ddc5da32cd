"""Work that goes on when the call that wanted it has gone, and is found again by the next call.

A result may take longer to fetch than one poll may last. Without this, every poll would begin anew and none would end.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Errands(Generic[T]):
    """Runs at most one errand per key. Finished ones wait to be collected; of those the oldest are forgotten first."""

    def __init__(self, limit: int = 1024) -> None:
        self._limit = limit
        self._tasks: OrderedDict[str, asyncio.Task[T]] = OrderedDict()

    async def run(self, key: str, errand: Callable[[], Awaitable[T]]) -> T:
        """The result of the errand of that key, begun now unless it is under way. Whatever it raises is raised."""
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.ensure_future(errand())
            task.add_done_callback(_heard)
            self._trim()
        try:
            return await asyncio.shield(task)
        finally:
            if task.done() and self._tasks.get(key) is task:
                del self._tasks[key]

    async def stop(self) -> None:
        """Give up what is under way."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _trim(self) -> None:
        for key in [key for key, task in self._tasks.items() if task.done()][: max(0, len(self._tasks) - self._limit)]:
            del self._tasks[key]


def _heard(task: "asyncio.Task[T]") -> None:
    """An error that nobody comes for is no error of the process."""
    if not task.cancelled():
        task.exception()
