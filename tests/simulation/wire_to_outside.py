"""One HTTP exchange over a wire that outlives its sender: what has left arrives, a break is noticed on both ends."""

import asyncio
import random
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from typing import Any

from services.provider_adapter.domain.exchange import Broken, ExchangeBroken, HttpResponse
from tests.simulation.loop import OWNER


@dataclass(slots=True)
class Outcome:
    """What becomes of a request: `act` is the provider's doing and its answer; `answers` False keeps it from us."""

    act: Callable[[], Any]
    reaches_after: float
    answers: bool


class Connection:
    """The provider's end. A broken one lets the request still take effect, for `settle_s` at most, or not at all."""

    def __init__(self, loop: Any, rng: random.Random, outcome: Outcome, settle_s: float) -> None:
        self._loop = loop
        self._rng = rng
        self._outcome = outcome
        self._settle_s = settle_s
        self.answer: asyncio.Future[Any] = loop.create_future()
        self._due = loop.time() + outcome.reaches_after
        self._timer = loop.call_at(self._due, self._act, context=Context())
        self._done = False

    def _act(self) -> None:
        self._done = True
        answer = self._outcome.act()
        if self._outcome.answers:
            self._loop.call_later(self._rng.uniform(0.005, 0.1), self._tell, answer, context=Context())

    def _tell(self, answer: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def broken(self) -> None:
        """Our end is gone."""
        if self._done:
            return
        self._timer.cancel()
        if self._rng.random() < 0.5:
            at = min(self._due, self._loop.time() + self._rng.uniform(0.0, self._settle_s))
            self._timer = self._loop.call_at(at, self._act, context=Context())
        self._done = True

    @staticmethod
    async def pause(loop: Any, seconds: float) -> None:
        """Let time pass."""
        future = loop.create_future()
        loop.call_later(seconds, lambda: future.done() or future.set_result(None))
        await future


async def converse(loop: Any, rng: random.Random, outcome: Outcome, total_s: float, settle_s: float) -> HttpResponse:
    """The answer, or ExchangeBroken. When the process dies in here, its connection breaks."""
    connection = Connection(loop, rng, outcome, settle_s)
    process: Any = OWNER.get()
    if process is not None:
        process.on_death.append(connection.broken)
    try:
        async with asyncio.timeout(total_s):
            answer = await connection.answer
    except TimeoutError:
        raise ExchangeBroken(Broken.READ_TIMEOUT) from None
    finally:
        connection.broken()
        if process is not None:
            process.on_death.remove(connection.broken)
    if isinstance(answer, ExchangeBroken):
        raise answer
    return answer
