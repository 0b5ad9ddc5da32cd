"""The server's own register of handlers at work. Drain waits for it, because gRPC's `server.stop` can return while a
`finally` block of a handler is still running.
"""

import asyncio
from collections import Counter

from libs.faults.fault import Fault
from libs.rpc.interceptors.incoming import Method

Task = asyncio.Task[object]


class RunningCalls:
    """Knows handlers from their first line to the end of their last `finally`, by the task that runs them."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._methods: dict[Task, Method] = {}
        self._stopped: set[Task] = set()
        self._idle: asyncio.Event | None = None

    def enter(self, method: Method) -> Task:
        """The handler of the running task begins. Give the result to `leave`."""
        task = asyncio.current_task()
        assert task is not None, "handlers run in tasks"
        self._methods[task] = method
        return task

    def admit(self) -> None:
        """Raise `overloaded` if more handlers run than this server may have."""
        if self._limit is not None and len(self._methods) > self._limit:
            raise Fault.of("overloaded", f"{self._limit} calls are in flight")

    def leave(self, task: Task) -> None:
        """The handler has ended."""
        self._methods.pop(task, None)
        self._stopped.discard(task)
        if self._idle is not None and not self._methods:
            self._idle.set()

    def stop(self, streams_only: bool = False) -> None:
        """Cancel the handlers (or only those that answer with a stream); their callers are told UNAVAILABLE."""
        for task, method in tuple(self._methods.items()):
            if method.response_streaming or not streams_only:
                self._stopped.add(task)
                task.cancel()

    def stopped(self, task: Task) -> bool:
        """Was this handler cancelled by `stop`?"""
        return task in self._stopped

    def __len__(self) -> int:
        return len(self._methods)

    def methods(self) -> dict[str, int]:
        """How many handlers run, by method path."""
        return dict(Counter(method.path for method in self._methods.values()))

    def streams(self) -> int:
        """How many handlers run that answer with a stream."""
        return sum(method.response_streaming for method in self._methods.values())

    async def wait_idle(self, timeout_s: float | None) -> bool:
        """Wait until no handler runs; False if some still do after `timeout_s`."""
        if not self._methods:
            return True
        if self._idle is None:
            self._idle = asyncio.Event()
        self._idle.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True
