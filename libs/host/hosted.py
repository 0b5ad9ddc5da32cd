"""What a context is to the process that hosts it: the answer of every `compose.build(settings, channels, world)`."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from libs.host.ticker import Ticker
from libs.kernel.world import World

Registration = tuple[str, Callable[[Any], None]]
"""The full name of a gRPC service, and what adds its servicer: `lambda server: add_X_to_server(servicer, server)`."""


class Context(Protocol):
    """A bounded context, built but not yet at work. The host calls migrate, start and stop once each, in that order."""

    @property
    def name(self) -> str:
        """The name of the context, as in `services/<name>`."""
        ...

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """The gRPC services that it serves; none for the edge."""
        ...

    async def migrate(self) -> None:
        """Bring its schema up to date. Other processes may do the same at the same time."""
        ...

    async def start(self) -> None:
        """Begin background work and own listeners. Its RPCs are reachable already; contexts below it are at work."""
        ...

    async def stop(self) -> None:
        """Drain: refuse new work, finish what is in hand, let go of leases, close pools. Bounded in time.

        Called after a failed or never tried `start` as well, and then must be harmless.
        """
        ...


@runtime_checkable
class Leaving(Protocol):
    """A Context with a door of its own, which says that it is about to close before it does."""

    def leave(self) -> None:
        """Say so from now on, and go on serving: load balancers have POINTSMAN_DRAIN_LAG_S to notice."""
        ...


Builder = Callable[[Mapping[str, str], Any, World], Context]
"""Builds a context from (environment, channels, world)."""

Step = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class ComposedContext:
    """A Context put together from its parts; enough for most houses.

    `begin` runs before the tickers start (warm a view, open a listener); `finish` runs after they have stopped, in the
    order given (drain, then close the database). Every finish runs, whatever the ones before it raised.
    """

    name: str
    registrations: tuple[Registration, ...] = ()
    migration: Step | None = None
    begin: tuple[Step, ...] = ()
    tickers: tuple[Ticker, ...] = ()
    finish: tuple[Step, ...] = ()
    _started: list[Ticker] = field(default_factory=list, init=False)

    async def migrate(self) -> None:
        """Run the migration, if there is one (a memory store has none)."""
        if self.migration is not None:
            await self.migration()

    async def start(self) -> None:
        """Run `begin`, then start the tickers."""
        for step in self.begin:
            await step()
        for ticker in self.tickers:
            ticker.start()
            self._started.append(ticker)

    async def stop(self) -> None:
        """Stop the tickers, newest first, then run `finish`."""
        steps: list[Step] = [ticker.stop for ticker in reversed(self._started)]
        errors = []
        for step in (*steps, *self.finish):
            try:
                await step()
            except Exception as error:  # one part that cannot close must not keep the others open
                errors.append(error)
        self._started.clear()
        if errors:
            raise ExceptionGroup(f"context {self.name} did not stop cleanly", errors)
