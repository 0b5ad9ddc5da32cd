"""The real world: the machine's clocks, ids from its randomness, chance from its seed."""

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from libs.kernel.world import World

RANDOM_BITS = 80
RANDOM_BYTES = RANDOM_BITS // 8
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
PAIRS = tuple(high + low for high in CROCKFORD for low in CROCKFORD)
"""Two characters for ten bits: a request makes several ids, and spells each in thirteen steps."""
SHIFTS = range(120, -1, -10)


class RealClock:
    """kernel.Clock over the operating system."""

    def now(self) -> datetime:
        """The wall time, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since an arbitrary point, never decreasing."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellable."""
        await asyncio.sleep(seconds)


class RisingUlids:
    """kernel.Ids: ULIDs that rise strictly within the process, from any thread, also when the wall clock steps back.

    A new millisecond takes fresh randomness; the same or an earlier one counts up from the last id.
    """

    def __init__(
        self,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._now_ms = now_ms
        self._entropy = entropy
        self._last = -1
        self._lock = threading.Lock()

    def ulid(self) -> str:
        """A new ULID: 26 characters of Crockford base 32."""
        with self._lock:
            fresh = self._now_ms() << RANDOM_BITS | int.from_bytes(self._entropy(RANDOM_BYTES), "big")
            if fresh >> RANDOM_BITS <= self._last >> RANDOM_BITS:
                fresh = self._last + 1
            self._last = fresh
        return "".join([PAIRS[fresh >> shift & 1023] for shift in SHIFTS])


def real_world() -> World:
    """The World of a process that serves. `random.Random` seeds itself from the operating system."""
    return World(clock=RealClock(), ids=RisingUlids(), rng=random.Random())
