"""What routing asks of a peer about many things at once, one call for all."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from libs.kernel.deadlines import carry_deadline
from libs.rpc.batches import BATCH_MAX, is_everybodys
from libs.store.gathering import Gathering

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")
PATIENCE_S = 0.05
LANES = 8


def loop_time() -> float:
    """The time of the running loop, in seconds."""
    return asyncio.get_running_loop().time()


class Batches(Generic[Ask, Answer]):
    """What is asked of a peer while a call to it is under way goes to it as one call.

    A lone ask waits for nobody. A call that takes longer than usual (of several replicas one may stand still) holds up
    those that were behind it by then and nobody who comes later: they take another lane. `call` is given a group, of
    one or of many; the deadline of no single asker is its own.
    """

    def __init__(
        self,
        call: Callable[[Sequence[Ask]], Awaitable[Sequence[Answer]]],
        identity: Callable[[Ask], Hashable],
        now: Callable[[], float] = loop_time,
    ) -> None:
        self._call = call
        self._identity = identity
        self._now = now
        self._lanes = [_Lane(call, identity, now)]

    async def ask(self, ask: Ask) -> Answer:
        """The answer to this one ask; raises its fault, or the one that befell its group."""
        return await self.begin(ask)

    def begin(self, ask: Ask) -> "asyncio.Future[Answer]":
        """The answer as it will be: who asks much at once needs no task for each."""
        now = self._now()
        lane = next((lane for lane in self._lanes if now - lane.busy_since < PATIENCE_S), None)
        if lane is None:
            if len(self._lanes) < LANES:
                self._lanes.append(_Lane(self._call, self._identity, self._now))
            lane = max(self._lanes, key=lambda each: each.busy_since)
        return lane.group.begin(ask)


class _Lane(Generic[Ask, Answer]):
    """One call at a time. `busy_since` is when the present one began, in the far future while there is none."""

    def __init__(
        self,
        call: Callable[[Sequence[Ask]], Awaitable[Sequence[Answer]]],
        identity: Callable[[Ask], Hashable],
        now: Callable[[], float],
    ) -> None:
        self._call = call
        self._now = now
        self.busy_since = float("inf")
        self.group: Gathering[Ask, Answer] = Gathering(self._carry, identity, BATCH_MAX, is_everybodys)

    async def _carry(self, asks: Sequence[Ask]) -> Sequence[Answer | Exception]:
        carry_deadline(None)
        self.busy_since = self._now()
        try:
            return await self._call(asks)
        finally:
            self.busy_since = float("inf")
