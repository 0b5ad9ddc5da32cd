"""Gathering: what concurrent callers ask of a store goes to it as one group.

Laws of this file:
- one group is in flight; whoever asks meanwhile, or in the turn of the event loop in which a group sets out, travels
  together in the next. A lone caller waits for nobody;
- a group is asked about in the trace of its first member, whoever's task carries it;
- a caller that went away before its group set out is left out; one that goes later changes nothing for the others;
- an error that befell the whole group (`shared`; by default any Fault but validation_failed) is everybody's. Another
  may be one member's own: the group is asked again one by one, and each gets its own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from libs.faults.fault import Fault
from libs.telemetry.spans import carried, here

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")
GROUP_MAX = 256
_Member = tuple[Ask, "asyncio.Future[Answer]", str]
"""What is asked, the answer to come, and the trace in which it is asked."""


def _befell_all(error: Exception) -> bool:
    """What cannot be taken is what one of them asked: a NUL in its text, for one."""
    return isinstance(error, Fault) and error.code != "validation_failed"


class Gathering(Generic[Ask, Answer]):
    """`work` answers a group in its order, a member's own fault in place of its answer. Belongs to one event loop.

    `identity` names what an ask is about: two about one thing are never in one group.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Ask]], Awaitable[Sequence[Answer | Exception]]],
        identity: Callable[[Ask], Hashable],
        most: int = GROUP_MAX,
        shared: Callable[[Exception], bool] = _befell_all,
    ) -> None:
        self._work = work
        self._identity = identity
        self._most = most
        self._shared = shared
        self._waiting: list[_Member[Ask, Answer]] = []
        self._task: asyncio.Task[None] | None = None

    async def ask(self, ask: Ask) -> Answer:
        """The answer to this one ask; raises its fault, or the one that befell its group."""
        return await self.begin(ask)

    def begin(self, ask: Ask) -> "asyncio.Future[Answer]":
        """The answer as it will be: who asks much at once needs no task for each."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((ask, future, here()))
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="group")
        return future

    async def close(self) -> None:
        """Wait for what was asked."""
        while self._task is not None:
            await asyncio.wait((self._task,))

    async def _run(self) -> None:
        try:
            while group := self._next():
                await self._answer(group)
        except asyncio.CancelledError as error:  # the loop ends: those behind the group are let go with it
            _give_up(self._waiting, error)
            raise
        finally:
            self._task = None

    def _next(self) -> "list[_Member[Ask, Answer]]":
        group: list[_Member[Ask, Answer]] = []
        left: list[_Member[Ask, Answer]] = []
        taken: set[Hashable] = set()
        for member in self._waiting:
            if member[1].done():
                continue
            name = self._identity(member[0])
            if len(group) < self._most and name not in taken:
                taken.add(name)
                group.append(member)
            else:
                left.append(member)
        self._waiting = left
        return group

    async def _answer(self, group: "Sequence[_Member[Ask, Answer]]") -> None:
        try:
            with carried(group[0][2]):
                answers = await self._work([member[0] for member in group])
        except Exception as error:
            if len(group) > 1 and not self._shared(error):
                for member in group:
                    await self._answer((member,))
                return
            answers = [error] * len(group)
        except BaseException as error:  # the end of the process, or of the loop: nobody waits for ever
            _give_up(group, error)
            if self._task is not None and self._task.cancelling():
                raise
            return  # a cancellation from inside the work ended its own group alone; the next one sets out
        for (_, future, _), answer in zip(group, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)


def _give_up(group: "Sequence[_Member[Ask, Answer]]", error: BaseException) -> None:
    for _, future, _ in group:
        if future.done():
            continue
        if isinstance(error, asyncio.CancelledError):
            future.cancel()
        else:
            future.set_exception(error)
