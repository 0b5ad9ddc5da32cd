"""The server's own register of handlers at work. Drain waits for it, because gRPC's `server.stop` can return while a
`finally` block of a handler is still running.
"""

import asyncio
from collections import Counter

from libs.faults.fault import Fault
from libs.rpc.interceptors.incoming import Method

Task = asyncio.Task[object]


class RunningCalls:
    """Knows handlers from their first line to the end of their last `finally`, by the task that runs them.

    Calls from this process (`local`) and calls from sockets are told apart: they are drained at different times.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._local: dict[Task, Method] = {}
        self._remote: dict[Task, Method] = {}
        self._stopped: set[Task] = set()
        self._emptied: asyncio.Event | None = None

    def enter(self, method: Method, local: bool) -> Task:
        """The handler of the running task begins. Give the result to `leave`."""
        task = asyncio.current_task()
        assert task is not None, "handlers run in tasks"
        (self._local if local else self._remote)[task] = method
        return task

    def admit(self) -> None:
        """Raise `overloaded` if more handlers run than this server may have."""
        if self._limit is not None and len(self) > self._limit:
            raise Fault.of("overloaded", f"{self._limit} calls are in flight")

    def leave(self, task: Task) -> None:
        """The handler has ended."""
        if self._remote.pop(task, None) is None:
            self._local.pop(task, None)
        self._stopped.discard(task)
        if self._emptied is not None and not self._remote:
            self._emptied.set()

    def stop(self, *, streams_only: bool = False, sockets_only: bool = False) -> int:
        """Cancel the handlers, or some of them; their callers are told UNAVAILABLE. How many were told."""
        chosen = [
            task for task, method in self._chosen(sockets_only).items() if method.response_streaming or not streams_only
        ]
        self._stopped.update(chosen)
        for task in chosen:
            task.cancel()
        return len(chosen)

    def stopped(self, task: Task) -> bool:
        """Was this handler cancelled by `stop`?"""
        return task in self._stopped

    def __len__(self) -> int:
        return len(self._local) + len(self._remote)

    def methods(self) -> dict[str, int]:
        """How many handlers run, by method path."""
        return dict(Counter(method.path for method in self._chosen(False).values()))

    async def wait_idle(self, timeout_s: float | None, sockets_only: bool = False) -> bool:
        """Wait until no handler runs; False if some still do after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._chosen(sockets_only):
                    if self._emptied is None:
                        self._emptied = asyncio.Event()
                    self._emptied.clear()
                    await self._emptied.wait()
        except TimeoutError:
            return False
        return True

    def _chosen(self, sockets_only: bool) -> dict[Task, Method]:
        return self._remote if sockets_only else self._remote | self._local
