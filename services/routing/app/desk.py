"""What every use-case has at hand."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from libs.faults.fault import Fault
from libs.kernel.world import World
from libs.store.gathering import Gathering
from services.routing.app.funds import Funds
from services.routing.app.sending import Sending
from services.routing.app.tenant_book import TenantBook
from services.routing.app.usher import Usher
from services.routing.domain.catalog import Catalog, Policy
from services.routing.domain.decision import AlertDraft
from services.routing.domain.doubt import Restore
from services.routing.domain.measure import MeasuredDraft
from services.routing.domain.task import Failure, Task
from services.routing.domain.trial import model_in, policy_in
from services.routing.ports import Capacity, CatalogReader, Health, Provider, Quotes, TaskStore
from services.routing.ports.alerts import Alert, AlertStore
from services.routing.ports.late import LateStore
from services.routing.ports.pausing import Pausing
from services.routing.ports.prices import UsagePrices
from services.routing.ports.quotas import QuotaReader
from services.routing.ports.restoring import Restoring
from services.routing.ports.standing import StandingReader
from services.routing.ports.waking import Waking
from services.routing.settings import Settings

if TYPE_CHECKING:
    from services.routing.app.turn import Placed

Result = TypeVar("Result")
log = logging.getLogger(__name__)

NO_POLICY = Policy(id="", revision=0)


class Store(TaskStore, Waking, Pausing, AlertStore, StandingReader, LateStore, QuotaReader, Restoring, Protocol):
    """Tasks and alerts share a transaction: an alert about a Task is as durable as what it tells of."""


class Prices(Quotes, UsagePrices, Protocol):
    """Before a call and after it."""


@dataclass(slots=True)
class Bell:
    """Wakes whoever scans the queue. A hint: a lost one costs one scan interval (ATT-9)."""

    listeners: tuple[Callable[[], None], ...] = ()

    def ring(self) -> None:
        """There may be work now."""
        for listener in self.listeners:
            listener()


class Errands:
    """Small tasks that nobody waits for, kept from being forgotten half done (CAP-8)."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Future[Any]] = set()

    def begin(self, errand: Awaitable[Result]) -> "asyncio.Future[Result]":
        """Do it, whatever becomes of the caller. What is under way already needs no task of its own."""
        begun = asyncio.ensure_future(errand)
        self._under_way.add(begun)
        begun.add_done_callback(self._ended)
        return begun

    def _ended(self, begun: "asyncio.Future[Any]") -> None:
        """What went wrong is told to whoever still waits; of an errand whose caller was ended it is only logged."""
        self._under_way.discard(begun)
        if not begun.cancelled() and (error := begun.exception()) is not None:
            level = logging.INFO if isinstance(error, Fault) else logging.ERROR
            log.log(level, "an errand ended with %r", error)

    async def done(self) -> None:
        """Return when none is under way."""
        while self._under_way:
            await asyncio.wait(self._under_way)


@dataclass(frozen=True, slots=True)
class Desk:
    """Ports, settings and world of this process. `worker` is its name in claims, new with every start."""

    store: Store
    catalog: CatalogReader
    health: Health
    capacity: Capacity
    quotes: Prices
    provider: Provider
    world: World
    settings: Settings
    worker: str
    bell: Bell
    turn: "Gathering[tuple[Desk, Task], Placed]"
    """From the snapshots to the reservation: see `turn`."""
    usher: Usher
    errands: Errands
    sending: Sending
    funds: Funds
    runs: TenantBook = field(default_factory=TenantBook)
    restores: list[Restore] = field(default_factory=list)
    """Times that the database was put back, as this process knows them."""

    def now(self) -> datetime:
        """The wall time."""
        return self.world.clock.now()

    def in_s(self, seconds: float) -> datetime:
        """That many seconds from now."""
        return self.now() + timedelta(seconds=seconds)

    def chance(self) -> float:
        """A float in [0, 1)."""
        return self.world.rng.random()


class Dated(Protocol):
    """A desk of any sort: it has a world and a time."""

    @property
    def world(self) -> World:
        """Clock, ids, chance."""
        ...

    def now(self) -> datetime:
        """The wall time."""
        ...


def policy_of(catalog: Catalog, task: Task) -> Policy:
    """The policy of the Task's model; the defaults hold while the catalogue does not name both."""
    model = model_in(catalog, task.request.model)
    return (policy_in(catalog, model) if model else None) or NO_POLICY


def failure_of(fault: Fault) -> Failure:
    """A Fault as data of the domain."""
    return Failure(
        category=fault.category.value,
        scope=fault.scope.value,
        retryable=fault.retryable,
        code=fault.code,
        message=fault.message,
        retry_after_ms=fault.retry_after_ms,
        provider=fault.provider,
        provider_code=fault.provider_code,
        provider_message=fault.provider_message,
    )


def alerts_of(desk: Dated, drafts: Sequence[AlertDraft], link: str = "", suffix: str = "") -> tuple[Alert, ...]:
    """Drafts as alerts of now. The dedupe key is kind and subject, and `suffix` where a new cause is a new alert."""
    now = desk.now()
    return tuple(
        Alert(
            id=desk.world.ids.ulid(),
            key=":".join(filter(None, (draft.kind, draft.subject, suffix))),
            kind=draft.kind,
            severity=draft.severity,
            subject=draft.subject,
            message=draft.message,
            cause=draft.cause,
            link=link,
            created_at=now,
            measure=draft.measure if isinstance(draft, MeasuredDraft) else None,
        )
        for draft in drafts
    )


def task_link(task: Task) -> str:
    """Where more is to be seen."""
    return f"/v1/tasks/{task.id}"
