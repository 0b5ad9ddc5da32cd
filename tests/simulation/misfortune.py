"""What goes wrong, drawn from the seed: processes die, stop and leave, the wire and the database suffer, providers
turn, keys are revoked, operators intervene. Until `until`; then everything is healed and nothing more happens.
"""

import asyncio
import contextvars
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tests.simulation.cluster import Cluster, Seat, VirtualClock
from tests.simulation.databases import Database, Trouble
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import CALM as CALM_WIRE
from tests.simulation.network import Network, Process, Weather
from tests.simulation.providers import CALM, MOODS, Mood, Outside
from tests.simulation.shape import Shape

FAVOURITES = {"routing": 5, "provider_adapter": 3, "runs": 2, "capacity": 2, "health": 2, "cost_quote": 1}
SKEW_S = 0.2
STEP_S = 120.0
"""Longer than a claim, and than a submission may be under way and unlisted; no window ends by it."""
HEARS_S = 5.0
"""Within so long each process hears what time it is."""
Order = Callable[[str, bool], Awaitable[None]]
Reprice = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Temper:
    """The share of each sort of misfortune in this world, and how many seconds lie between two of them.

    `pace` is in shares of what is usual in a world of that shape; lower is worse.
    """

    pace: float
    weights: Mapping[str, float]
    moods: Sequence[Mood] = MOODS
    favourites: Mapping[str, float] = field(default_factory=lambda: FAVOURITES)
    """How often each context is struck, compared with the others."""
    longest_pause_s: float = 45.0
    """Of a process that stands still, in a world of full size; a claim is held for 15 s there."""


@dataclass(slots=True)
class Misfortune:
    """One world's. `order` lets an operator switch a Channel or Supply off and on, `reprice` puts a new edition of the
    catalogue in force."""

    rng: random.Random
    loop: VirtualLoop
    cluster: Cluster
    database_clock: VirtualClock
    network: Network
    database: Database
    outside: Outside
    order: Order
    reprice: Reprice
    shape: Shape
    counts: Counter[str]
    trace: Callable[[str], None]
    healed: bool = False
    temper: Temper = field(default_factory=lambda: Temper(1.0, {}))
    _switched: set[str] = field(default_factory=set)
    _pending: set["asyncio.Task[None]"] = field(default_factory=set)

    def drawn(self) -> Temper:
        """Every world has its own: some are mild, some know one sort only."""
        rng = self.rng
        sorts = ("kill", "pause", "leave", "wire", "database", "mood", "key", "operator", "catalog")
        weights = {sort: rng.choice((0.0, 1.0, 1.0, 3.0)) for sort in sorts}
        weights["mood"] = max(weights["mood"], 1.0)
        return Temper(1.0, weights, longest_pause_s=rng.choice((45.0, 45.0, 150.0)))

    async def go_on(self, until: float, temper: Temper | None = None) -> None:
        """Strike until that moment, then heal."""
        temper = self.temper = temper or self.drawn()
        mean_s = temper.pace * self.shape.mean_s
        if self.shape.size != "large":  # little time is left to come to it
            for account in self.outside.accounts.values():
                account.mood = self.rng.choice((account.mood, *temper.moods))
        while True:
            await asyncio.sleep(min(self.rng.expovariate(1 / mean_s), until - self.loop.time()))
            if self.loop.time() >= until:
                break
            sort = self.rng.choices(list(temper.weights), list(temper.weights.values()))[0]
            self.counts[f"misfortune {sort}"] += 1
            getattr(self, f"_{sort}")()
        await self.heal()

    async def heal(self) -> None:
        """All is well from now on."""
        self.healed = True
        if self._pending:
            await asyncio.wait(self._pending)
        self.network.weather, self.database.trouble = CALM_WIRE, Trouble()
        for name, account in self.outside.accounts.items():
            account.mood, account.key = CALM, f"key-{name}"
            self.outside.secrets[f"env:{name.upper()}_KEY"] = account.key
        for seat in self.cluster.seats:
            if seat.process is not None:
                seat.process.doom = None
                self._wake(seat)
        for subject in sorted(self._switched):
            await self.order(subject, True)
        self.trace("healed")

    # --- the sorts ---

    def _kill(self) -> None:
        seat = self._seat()
        if seat.process is None or seat.process.dead:
            return
        process = seat.process

        def strike() -> None:
            if not process.dead:
                self.counts["killed"] += 1
                self.trace(f"killed {seat.name} at step {process.steps}")
                process.kill()
                self._later(self._down_s(), lambda: self._up(seat))

        self._doom(process, strike)

    def _pause(self) -> None:
        seat = self._seat()
        if seat.process is None or seat.process.dead:
            return
        process = seat.process
        seconds = self.rng.choice((self.rng.uniform(0.2, 3.0), self.rng.uniform(10.0, self.temper.longest_pause_s)))
        seconds *= self.shape.stretch

        def strike() -> None:
            self.trace(f"paused {seat.name} for {seconds:.1f} s at step {process.steps}")
            self.counts["paused"] += 1
            process.paused = True
            self._later(seconds, lambda: self._wake(seat))

        self._doom(process, strike)

    def _leave(self) -> None:
        seat = self._seat()
        process = seat.process
        if process is None or process.dead or process.paused:
            return
        self.counts["told to leave"] += 1
        self.trace(f"{seat.name} is told to leave")
        process.on_death.append(lambda: self._later(self._down_s(), lambda: self._up(seat)))
        self.cluster.retire(seat)

    def _wire(self) -> None:
        rng = self.rng
        self.network.weather = Weather(
            lost_request=rng.choice((0.0, 0.02, 0.1)),
            lost_answer=rng.choice((0.0, 0.02, 0.1)),
            late=rng.choice((0.0, 0.05, 0.2)),
            doubled=rng.choice((0.0, 0.05, 0.2)),
            longest_delay_s=rng.choice((0.5, 4.0, 14.0)) * self.shape.stretch,
        )

    def _database(self) -> None:
        rng = self.rng
        share = rng.choice((0.05, 0.3, 1.0))
        self.database.trouble = Trouble(share, rng.choice((0.0, 0.05, 0.3)), rng.choice((0.02, 0.3)))
        self._later(rng.uniform(0.3, 8.0) * self.shape.stretch, lambda: setattr(self.database, "trouble", Trouble()))

    def _mood(self) -> None:
        account = self.rng.choice(list(self.outside.accounts.values()))
        account.mood = self.rng.choice(self.temper.moods)
        self.counts[f"mood {account.mood.name}"] += 1
        self.trace(f"{account.name} is {account.mood.name}")

    def _key(self) -> None:
        account = self.rng.choice(list(self.outside.accounts.values()))
        self.counts["keys revoked"] += 1
        account.key = f"key-{account.name}-{self.counts['keys revoked']}"
        self.trace(f"the key of {account.name} is revoked")
        name, key = f"env:{account.name.upper()}_KEY", account.key
        self._later(self.rng.uniform(5.0, 40.0) * self.shape.stretch, lambda: self.outside.secrets.update({name: key}))

    def _operator(self) -> None:
        offers = self.shape.offers
        subject = self.rng.choice((*offers.accounts, *offers.supply_slots))
        self._switched.add(subject)

        async def off_and_on() -> None:
            await self.order(subject, False)
            await asyncio.sleep(self.rng.uniform(2.0, 30.0) * self.shape.stretch)
            await self.order(subject, True)

        self._keep(asyncio.ensure_future(off_and_on()))

    def _catalog(self) -> None:
        async def reprice() -> None:
            await self.reprice()

        self._keep(asyncio.ensure_future(reprice()))

    def _step(self) -> None:
        """The database's clock goes forward, and the processes follow, one after the other. No world draws this: what a
        provider bears in a minute is counted by that clock."""
        seconds = STEP_S * self.shape.stretch
        self.cluster.stepped_s += seconds
        self.database_clock.skew_s += seconds
        self.trace(f"the clock steps by {seconds:g} s")
        for seat in self.cluster.seats:
            self._later(self.rng.uniform(0.0, HEARS_S) * self.shape.stretch, partial(_hear, seat.clock, seconds))

    # --- what they share ---

    def _doom(self, process: Process, strike: Callable[[], None]) -> None:
        """At one of its next steps, or while it waits for something, whichever comes first."""
        doom = process.doom = (process.steps + self.rng.randrange(1, 200), strike)

        def idle() -> None:
            if process.doom is doom:
                process.doom = None
                strike()

        self._later(self.rng.expovariate(0.7) * self.shape.stretch, idle)

    def _seat(self) -> Seat:
        seats = self.cluster.seats
        return self.rng.choices(seats, [self.temper.favourites.get(seat.name.partition("-")[0], 0) for seat in seats])[
            0
        ]

    def _down_s(self) -> float:
        return self.rng.choice((self.rng.uniform(0.05, 1.0), self.rng.uniform(1.0, 25.0))) * self.shape.stretch

    def _up(self, seat: Seat) -> None:
        if seat.process is None or seat.process.dead:
            self.trace(f"{seat.name} is back")
            self.cluster.start(seat, self.rng.uniform(-SKEW_S, SKEW_S))

    def _wake(self, seat: Seat) -> None:
        if seat.process is not None and seat.process.paused:
            self.trace(f"{seat.name} goes on")
            self.loop.wake(seat.process)

    def _later(self, seconds: float, act: Callable[[], object]) -> None:
        async def then() -> None:
            await asyncio.sleep(seconds)
            act()

        self._keep(self.loop.create_task(then(), context=_nobody()))

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)


def _hear(clock: VirtualClock | None, seconds: float) -> None:
    if clock is not None:
        clock.skew_s += seconds


def _nobody() -> contextvars.Context:
    return contextvars.Context()
