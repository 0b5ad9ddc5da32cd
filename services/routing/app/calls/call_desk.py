"""What every use-case of synchronous calls has at hand, and what a process remembers between them."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from libs.kernel.money import Money
from libs.kernel.world import World
from libs.store.gathering import Gathering
from services.routing.app.calls.afterwards import Afterwards
from services.routing.app.calls.call_holds import CallHolds
from services.routing.app.calls.looking import Looking
from services.routing.app.calls.watchdog import Watch
from services.routing.app.desk import Errands
from services.routing.app.funds import Funds
from services.routing.domain.calls.selectors import Rota
from services.routing.domain.calls.stall_clock import nanos
from services.routing.domain.calls.token_rates import TokenRates
from services.routing.domain.decision import QuoteView
from services.routing.ports import CatalogReader
from services.routing.ports.alerts import AlertStore
from services.routing.ports.calls import (
    AnswerStore,
    CallCapacity,
    CallHealth,
    CallProvider,
    CallQuotes,
    CallStore,
)
from services.routing.ports.prices import UsageItem
from services.routing.settings import Settings

if TYPE_CHECKING:
    from services.routing.app.calls.call_turn import Ask, Seat

QUOTES_KEPT = 1024
RATES_KEPT = 4096
TOLD_FOR = timedelta(seconds=10)


class Quoted:
    """Quotes by question. They depend on nothing but the question and the revision of the rules, so they stay true; and
    so do the rates of the rules that gave them."""

    def __init__(self) -> None:
        self._known: OrderedDict[object, Mapping[str, QuoteView]] = OrderedDict()
        self._rates: dict[tuple[int, str, int], TokenRates] = {}

    def get(self, question: object) -> Mapping[str, QuoteView] | None:
        """What was answered; None where nobody has asked, or it was too long ago."""
        return self._known.get(question)

    def put(self, question: object, quotes: Mapping[str, QuoteView]) -> None:
        """Keep it, and let the oldest go."""
        self._known[question] = quotes
        while len(self._known) > QUOTES_KEPT:
            self._known.popitem(last=False)

    def rates(self, revision: int, rule: str, version: int) -> TokenRates | None:
        """What tokens cost by that version of a rule at that revision; None where cost_quote alone can tell."""
        return self._rates.get((revision, rule, version))

    def learn(self, revision: int, rates: Mapping[tuple[str, int], TokenRates]) -> None:
        """Rates by (rule, version), as they came with quotes."""
        if len(self._rates) > RATES_KEPT:
            self._rates.clear()
        self._rates.update({(revision, rule, version): told for (rule, version), told in rates.items()})


class Room:
    """Tells those who wait that something was given back. A hint: whoever misses it looks again by itself."""

    def __init__(self) -> None:
        self._came = asyncio.Event()
        self._waiting = 0

    def freed(self) -> None:
        """Wake everybody who waits now."""
        came, self._came = self._came, asyncio.Event()
        came.set()

    @property
    def wanted(self) -> bool:
        """Whether anybody waits."""
        return self._waiting > 0

    async def wait(self) -> None:
        """Until the next time."""
        self._waiting += 1
        try:
            await self._came.wait()
        finally:
            self._waiting -= 1


@dataclass(slots=True)
class Memory:
    """What one process remembers; nothing depends on it but speed and whose turn it is."""

    quoted: Quoted = field(default_factory=Quoted)
    rotas: dict[str, Rota] = field(default_factory=dict)
    """By Public Model."""
    successes: dict[str, datetime] = field(default_factory=dict)
    """By Public Model, when a call of this process last succeeded."""
    room: Room = field(default_factory=Room)
    told: dict[str, datetime] = field(default_factory=dict)
    """By key of an alert, when it was last raised here."""

    def is_news(self, key: str, now: datetime) -> bool:
        """Whether that alert was not raised here for a while; from now on it was."""
        last = self.told.get(key)
        if last is not None and now - last < TOLD_FOR:
            return False
        self.told[key] = now
        return True

    def rota(self, model: str) -> Rota:
        """Of that model."""
        return self.rotas.setdefault(model, Rota())


@dataclass(frozen=True, slots=True)
class CallDesk:
    """Ports, settings and world of this process."""

    store: CallStore
    answers: AnswerStore
    alerts: AlertStore
    catalog: CatalogReader
    health: CallHealth
    capacity: CallCapacity
    quotes: CallQuotes
    provider: CallProvider
    world: World
    settings: Settings
    errands: Errands
    afterwards: Afterwards
    looking: Looking
    turn: "Gathering[Ask, Seat]"
    """From the snapshots to the reservation: see `call_turn`."""
    prices: Gathering[UsageItem, Money | None]
    watch: Watch
    funds: Funds
    holds: CallHolds
    memory: Memory = field(default_factory=Memory)

    def now(self) -> datetime:
        """The wall time."""
        return self.world.clock.now()

    def now_ns(self) -> int:
        """The monotonic time in nanoseconds."""
        return nanos(self.world.clock.monotonic())

    def chance(self) -> float:
        """A float in [0, 1)."""
        return self.world.rng.random()
