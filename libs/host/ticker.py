"""Background work: one async tick, again and again, for as long as a context lives.

    self._tick = Ticker("runs.submit", use_case.tick, world=world, interval_s=0.5)
    self._tick.start()      # in Context.start()
    self._tick.wake()       # optional: there is work now
    await self._tick.stop() # in Context.stop(): the tick in hand finishes

Laws:
- one tick at a time; the pause is counted from the end of one to the start of the next, with jitter, so that replicas
  do not march in step;
- a tick that raises is logged and tried again after a pause that doubles up to `backoff_max_s`; nothing ends the loop
  but `stop`. A wake does not shorten that pause: a failing machine is not hammered because there is work;
- a tick that returns True has more to do and is called again at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from libs.faults.fault import Fault
from libs.kernel.world import World
from libs.telemetry import metrics, names

Tick = Callable[[], Awaitable[object]]
LONGEST_DOUBLING = 16

log = logging.getLogger(__name__)


class Ticker:
    """The loop around one tick. Belongs to one event loop; `start` and `stop` once each."""

    def __init__(
        self,
        name: str,
        tick: Tick,
        *,
        world: World,
        interval_s: float,
        jitter: float = 0.1,
        backoff_max_s: float = 30.0,
        timeout_s: float | None = None,
        grace_s: float = 10.0,
        most_share: float = 1.0,
    ) -> None:
        """`jitter` is a share of the pause (0.1: ±10 %). `timeout_s` ends a hung tick, which then counts as failed.
        `most_share` of the time may be spent in ticks: after a long one the pause is longer (0.05: 19 times as long).

        `grace_s` is how long `stop` lets the tick in hand go on before it cancels it.
        """
        self.name = name
        context, _, work = name.partition(".")
        self._labels = {"context": context, "tick": work}
        self.failures = 0
        self._tick = tick
        self._world = world
        self._interval_s = interval_s
        self._jitter = jitter
        self._backoff_max_s = max(backoff_max_s, interval_s)
        self._timeout_s = timeout_s
        self._grace_s = grace_s
        self._rests = 1 / most_share - 1
        """How many times as long as the last tick took the pause is at least."""
        self._took_s = 0.0
        self._woken = self._stopping = False
        self._pause: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin with a tick at once. Needs a running event loop."""
        if self._task is not None:
            raise RuntimeError(f"ticker {self.name} is started already")
        self._task = asyncio.create_task(self._loop(), name=f"ticker {self.name}")

    def wake(self) -> None:
        """Tick as soon as the tick in hand is done. Many wakes are one."""
        self._woken = True
        if not self.failures:
            self._end_pause()

    async def stop(self) -> None:
        """Let the tick in hand finish within `grace_s`, then cancel it. Returns when the loop has ended."""
        if self._task is None:
            return
        self._stopping = True
        self._end_pause()
        _, pending = await asyncio.wait({self._task}, timeout=self._grace_s)
        if pending:
            log.warning("ticker %s did not finish within %g s; cancelling it", self.name, self._grace_s)
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _loop(self) -> None:
        while not self._stopping:
            self._woken = False
            more = await self._once()
            if more:
                await asyncio.sleep(0)  # others get their turn, however much there is to do
            else:
                await self._rest()

    async def _once(self) -> bool:
        """One tick. True if it asks to be called again at once."""
        begun_s = self._world.clock.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s):
                more = await self._tick()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._failed("was cancelled from inside", None)  # a library's own cancellation must not end the loop
        except Fault as fault:
            self._failed(str(fault), None)
        except Exception as error:
            self._failed(repr(error), error)
        else:
            took_s = self._world.clock.monotonic() - begun_s
            metrics.PROCESS.histogram(names.TICK_SECONDS, **self._labels).observe(took_s)
            if self.failures:
                log.info("ticker %s works again after %d failures", self.name, self.failures)
            self.failures = 0
            return more is True
        finally:
            self._took_s = self._world.clock.monotonic() - begun_s
        return False

    def _failed(self, text: str, error: BaseException | None) -> None:
        self.failures += 1
        metrics.PROCESS.counter(names.TICK_FAILURES, **self._labels).inc()
        log.warning("ticker %s failed (%d in a row): %s", self.name, self.failures, text, exc_info=error)

    async def _rest(self) -> None:
        """Pause until the interval is over, a wake comes (not after a failure) or the ticker stops."""
        pause_s = self._interval_s * 2.0 ** min(self.failures, LONGEST_DOUBLING)
        pause_s = min(pause_s, self._backoff_max_s if self.failures else self._interval_s)
        pause_s = max(pause_s, self._took_s * self._rests)
        pause_s *= self._world.rng.uniform(1 - self._jitter, 1 + self._jitter)
        if self._stopping or (self._woken and not self.failures):
            await asyncio.sleep(0)
            return
        # One task a pause, ended by whoever has a reason to: an idle process does little else than this.
        pause = self._pause = asyncio.ensure_future(self._world.clock.sleep(pause_s))
        try:
            await asyncio.wait((pause,))
        finally:
            self._end_pause()

    def _end_pause(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
