"""An event loop without a clock: when nothing is ready it jumps to the next timer, so a simulated hour costs no time.

Laws of this file:
- time moves only while nothing is ready; every await in between happens at one moment;
- which ready callback runs next is drawn from a seed (`shuffle` is the share of draws; 0 keeps asyncio's order);
- every callback belongs to the process that stood in its context when it was scheduled: one of a dead process never
  runs (no `finally`, no `except`, as after kill -9), one of a paused process waits in that process's backlog.
"""

import asyncio
import contextvars
import heapq
import random
import sys
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any

STEPS_AT_ONE_MOMENT = 300_000


class Owner:
    """What a callback may belong to. `steps` counts its callbacks; `doom` is what befalls it at a step of its life."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        self.paused = False
        self.steps = 0
        self.doom: tuple[int, Callable[[], None]] | None = None
        self.backlog: list[Callback] = []
        self.context = Context()
        self.context.run(OWNER.set, self)

    def meets_doom(self) -> None:
        """One more step of its life; what is to befall it there does so before the callback in hand."""
        self.steps += 1
        if self.doom is not None and self.steps >= self.doom[0]:
            _, strike = self.doom
            self.doom = None
            strike()


OWNER: ContextVar[Owner | None] = ContextVar("owner", default=None)


class Callback:
    """One scheduled call: what asyncio calls a Handle."""

    __slots__ = ("_args", "_call", "_when", "cancelled_", "context")

    def __init__(self, call: Callable[..., object], args: tuple[Any, ...], context: Context, when: float = 0.0) -> None:
        self._call: Callable[..., object] | None = call
        self._args = args
        self._when = when
        self.context = context
        self.cancelled_ = False

    def cancel(self) -> None:
        """It will not run."""
        self.cancelled_ = True
        self._call, self._args = None, ()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self.cancelled_

    def when(self) -> float:
        """The moment it is due, in the loop's seconds."""
        return self._when

    def run(self) -> None:
        """Call it."""
        assert self._call is not None
        self.context.run(self._call, *self._args)


class Stalled(RuntimeError):
    """Nothing is ready, no timer runs, and what was waited for has not come; or a moment never ends."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """The loop of one simulation. `run` may be called several times; time goes on where it stood."""

    def __init__(self, rng: random.Random, shuffle: float = 0.0) -> None:
        self._rng = rng
        self._shuffle = shuffle
        self._now = 0.0
        self._ready: deque[Callback] = deque()
        self._timers: list[tuple[float, int, Callback]] = []
        self._count = 0
        self._at_this_moment = 0
        self._closed = False
        self._tidy_at = 4096
        self.failures: list[str] = []
        """What asyncio calls exceptions that nobody retrieved."""
        self._tasks: list[tuple[asyncio.Task[Any], Owner | None]] = []

    # --- what asyncio asks of a loop ---

    def time(self) -> float:
        """Seconds since the beginning of the simulation."""
        return self._now

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Any:
        """Schedule for this moment."""
        scheduled = Callback(callback, args, contextvars.copy_context() if context is None else context)
        self._ready.append(scheduled)
        return scheduled

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        """Schedule for `delay` seconds from now."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Any:
        """Schedule for that moment."""
        scheduled = Callback(callback, args, contextvars.copy_context() if context is None else context, when)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, scheduled))
        return scheduled

    def create_future(self) -> "asyncio.Future[Any]":
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> Any:
        """A task of this loop, in the context given or the present one. Kept, so that the dead are not tidied away."""
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.append((task, OWNER.get() if context is None else context.get(OWNER)))
        if len(self._tasks) > self._tidy_at:
            self._tasks = [kept for kept in self._tasks if not kept[0].done()]
            self._tidy_at = 4096 + 2 * len(self._tasks)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep it for the checkers."""
        self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")

    def get_debug(self) -> bool:
        """Never."""
        return False

    def is_running(self) -> bool:
        """Whether `run` is under way."""
        return events._get_running_loop() is self

    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    # --- running ---

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run until that coroutine has ended; its result. It belongs to no process."""
        task = self.create_task(coroutine, context=Context())
        previous = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=None, finalizer=self._close_generator)
        events._set_running_loop(self)
        try:
            while not task.done():
                self._step()
        finally:
            events._set_running_loop(None)
            sys.set_asyncgen_hooks(*previous)
        return task.result()

    def close(self) -> None:
        """End every task that is left: the dead are woken for this once, so that none is left half-done."""
        for task, owner in self._tasks:
            if owner is not None:
                owner.dead, owner.doom = False, None
                self.wake(owner)
            task.cancel()
        try:
            self.run(self._end_of_all([task for task, _ in self._tasks if not task.done()]))
        finally:
            self._closed = True

    async def _end_of_all(self, tasks: list[asyncio.Task[Any]]) -> None:
        await asyncio.wait([*tasks, asyncio.ensure_future(asyncio.sleep(0))], timeout=600.0)

    def _close_generator(self, generator: Any) -> None:
        if not self._closed:
            self.call_soon(self.create_task, generator.aclose())

    def _step(self) -> None:
        if not self._ready:
            self._jump()
        ready = self._ready
        if len(ready) > 1 and self._shuffle and self._rng.random() < self._shuffle:
            ready.rotate(-self._rng.randrange(min(len(ready), 64)))
        callback = ready.popleft()
        if callback.cancelled_:
            return
        owner = callback.context.get(OWNER)
        if owner is not None:
            if not owner.dead and not owner.paused:
                owner.meets_doom()
            if owner.dead or owner.paused:
                owner.backlog.append(callback)
                return
        self._at_this_moment += 1
        if self._at_this_moment > STEPS_AT_ONE_MOMENT:
            raise Stalled(f"the moment {self._now:.3f} s does not end; the last callback is {callback._call!r}")
        callback.run()

    def _jump(self) -> None:
        timers = self._timers
        while timers and timers[0][2].cancelled_:
            heapq.heappop(timers)
        if not timers:
            raise Stalled(f"at {self._now:.3f} s nothing is ready and nobody waits for a time")
        self._at_this_moment = 0
        self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            _, _, callback = heapq.heappop(timers)
            if not callback.cancelled_:
                self._ready.append(callback)

    def wake(self, owner: Owner) -> None:
        """A paused process goes on: what has come in meanwhile is due now, in the order it came."""
        owner.paused = False
        self._ready.extend(owner.backlog)
        owner.backlog.clear()
