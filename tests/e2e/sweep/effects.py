"""Counts the effects of a process by name, writes them down, and kills the process at the one it was told.

A place is `NAME.N/before` or `NAME.N/after`: the N-th effect of that name. Names instead of one running number, so that
a place stays the same place when two independent effects change their order from one run to the next.

Everything here stands outside of the product and is passed into it through its composition: a database, a channel, a
way outward and a store of media, each a thin cover over the real one.
"""

import inspect
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.store.database import Database
from libs.store.lane import Lane

BY_THE_CLOCK = frozenset(
    {"routing.prolong", "routing.pulse", "capacity.RenewLeases", "cost_quote.mismatches", "cost_quote.reread"}
)
"""They come as time passes, not as the task goes on: a death beside them is a death beside what was last done."""
COUNTED_CALLS = frozenset({"Reserve", "Release", "ReportOutcome"})
"""The calls to capacity and health that change something for a task."""
CHANGED = "SELECT pg_current_xact_id_if_assigned()"
"""The server gives an id to those transactions alone that write or lock."""
_method: ContextVar[str] = ContextVar("method", default="a unit of nobody")


class Effects:
    """One process's. `place` is where it dies; empty: it lives. `journal` gets a line for each effect and the death."""

    def __init__(self, place: str, journal: Path) -> None:
        self._name, _, self._moment = place.partition("/")
        self._counts: Counter[str] = Counter()
        self._journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def begin(self, name: str) -> str:
        """An effect is about to take place; its number, for `done`. "" for one that is not counted."""
        if name in BY_THE_CLOCK:
            return ""
        self._counts[name] += 1
        numbered = f"{name}.{self._counts[name]}"
        self._reach(numbered, "before")
        return numbered

    def done(self, numbered: str) -> None:
        """It has taken place. One that raised has not, and this is not called."""
        if numbered:
            self._reach(numbered, "after")

    def _reach(self, numbered: str, moment: str) -> None:
        dies = (numbered, moment) == (self._name, self._moment)
        os.write(self._journal, f"{'dies' if dies else 'lives'} {numbered}/{moment}\n".encode())
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalDatabase(Database):
    """A database whose process may die just before or just after each commit that changed something."""

    def __init__(self, effects: Effects, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._effects = effects

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[AsyncConnection]:
        """See `Database`."""
        numbered = ""
        async with super().unit() as tx:
            yield tx
            if (await tx.execute(text(CHANGED))).scalar() is not None:
                numbered = self._effects.begin(_method.get())
        self._effects.done(numbered)

    def lane(self, *, by_index: bool = False) -> Lane:
        """See `Database`."""
        lane = MortalLane(self._effects, self._engine, by_index=by_index)
        self._lanes.append(lane)
        return lane


class MortalLane(Lane):
    """A lane that opens the transaction of each statement itself, so that there is a moment before its commit."""

    def __init__(self, effects: Effects, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._effects = effects

    async def _fetch(self, sql: str, values: tuple[object, ...]) -> list[Any]:
        if self._driver is None or self._driver.is_closed():
            await self._open()
        numbered = ""
        async with self._driver.transaction():
            rows = await super()._fetch(sql, values)
            if await self._driver.fetchval(CHANGED) is not None:
                numbered = self._effects.begin(_method.get())
        self._effects.done(numbered)
        return rows


class Named:
    """A store whose database learns which method is at work: `routing.save`."""

    def __init__(self, context: str, inner: Any) -> None:
        self._context = context
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(method):
            return method

        async def call(*given: Any, **more: Any) -> Any:
            token = _method.set(f"{self._context}.{name}")
            try:
                return await method(*given, **more)
            finally:
                _method.reset(token)

        return call


class MortalChannels:
    """The doors of one context; calls that change capacity or health are effects."""

    def __init__(self, inner: Any, effects: Effects) -> None:
        self._inner = inner
        self._effects = effects

    def to(self, context: str) -> Any:
        """See `Channels`."""
        channel = self._inner.to(context)
        return MortalChannel(channel, context, self._effects) if context in ("capacity", "health") else channel


class MortalChannel:
    """A channel for generated stubs."""

    def __init__(self, inner: Any, context: str, effects: Effects) -> None:
        self._inner = inner
        self._context = context
        self._effects = effects

    def unary_unary(self, path: str, *given: Any, **more: Any) -> Callable[..., Any]:
        """See `grpc.aio.Channel`."""
        inner, name = self._inner.unary_unary(path, *given, **more), path.rpartition("/")[2]
        if name not in COUNTED_CALLS:
            return inner  # type: ignore[no-any-return]  # whatever a stub gets

        async def call(*asked: Any, **options: Any) -> Any:
            numbered = self._effects.begin(f"{self._context}.{name}")
            answer = await inner(*asked, **options)
            self._effects.done(numbered)
            return answer

        return call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class MortalTransport:
    """The way to the providers: each exchange is an effect, and so is each result fetched."""

    def __init__(self, inner: Any, effects: Effects) -> None:
        self._inner = inner
        self._effects = effects

    async def exchange(self, request: Any, target: Any) -> Any:
        """See `ports.Transport`."""
        numbered = self._effects.begin(f"provider.{request.method}")
        try:
            return await self._inner.exchange(request, target)
        finally:
            self._effects.done(numbered)  # a broken exchange may have arrived: it is over, and that is all we know

    def stream(self, request: Any, target: Any) -> Any:
        """See `ports.Transport`. No scene is streamed."""
        return self._inner.stream(request, target)

    def fetch(self, url: str, door: Any = None) -> Any:
        """See `ports.Transport`. Reading changes nothing."""
        return self._inner.fetch(url, door)


class MortalMedia:
    """The store of results: each one kept is an effect."""

    def __init__(self, inner: Any, effects: Effects) -> None:
        self._inner = inner
        self._effects = effects

    async def keep(self, *given: Any) -> Any:
        """See `ports.MediaStore`."""
        numbered = self._effects.begin("media.keep")
        stored = await self._inner.keep(*given)
        self._effects.done(numbered)
        return stored

    async def about(self, *given: Any) -> Any:
        """See `ports.MediaStore`. Looking changes nothing."""
        return await self._inner.about(*given)

    async def content(self, *given: Any) -> Any:
        """See `ports.MediaStore`. Reading changes nothing."""
        return await self._inner.content(*given)
