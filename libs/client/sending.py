"""One request, sent as often as patience and safety allow."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from libs.client.faults import PointsmanError, Problem
from libs.client.retrying import Patience, Safety, pause_s, repeatable

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Means:
    """What patience needs of the world: `sleep` in seconds, `chance` in [0, 1), `now_s` that never falls."""

    sleep: Sleep = asyncio.sleep
    chance: Callable[[], float] = random.random
    now_s: Callable[[], float] = time.monotonic


@dataclass(slots=True)
class Tries:
    """The tries of one request, or of one stretch of a stream."""

    patience: Patience
    means: Means
    tried: int = 0
    began_s: float | None = None

    def progress(self) -> None:
        """Something came: what failed before counts no more."""
        self.tried, self.began_s = 0, None

    async def after(self, error: PointsmanError, safety: Safety, at_least_s: float = 0.0) -> None:
        """Wait until the next try; raises the error where there is to be none."""
        self.tried += 1
        now_s = self.means.now_s()
        self.began_s = now_s if self.began_s is None else self.began_s
        spent_s = now_s - self.began_s
        wait = pause_s(self.patience, self.tried, spent_s, error, self.means.chance())
        if wait is None or not repeatable(error, safety):
            raise error
        await self.means.sleep(max(wait, at_least_s))


async def patiently(
    send: Callable[[], Awaitable[T]],
    safety: Safety,
    patience: Patience,
    means: Means,
    *,
    final: frozenset[str] = frozenset(),
) -> T:
    """What `send` gives in the end. Problems whose code is `final` are raised at once: they are answers."""
    tries = Tries(patience, means, began_s=means.now_s())
    while True:
        try:
            return await send()
        except PointsmanError as error:
            if isinstance(error, Problem) and error.code in final:
                raise
            await tries.after(error, safety)
