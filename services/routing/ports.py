"""What routing needs of others, in its own words. Every call may raise `Fault`; none raises anything else.

The store's ports stand beside their use in `store/`'s contract suites; these are the peers'.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from libs.kernel.money import Money
from services.routing.domain.catalog import Catalog, Channel, Supply
from services.routing.domain.decision import CapacityView, HealthView, QuoteView
from services.routing.domain.task import Artifact, Attempt, Failure


class CatalogReader(Protocol):
    """The catalogue in force. `current` may be at most one second old; `at` reads an older revision for ever."""

    async def current(self) -> Catalog:
        """The newest revision."""
        ...

    async def at(self, revision: int) -> Catalog:
        """That revision, as it was."""
        ...


class Health(Protocol):
    """The breaker's view and its ear."""

    async def snapshot(self) -> tuple[Mapping[str, HealthView], Mapping[str, HealthView]]:
        """(by Channel id, by Supply id) at one moment."""
        ...

    async def report(
        self, attempt: Attempt, failure: Failure | None, dispatched_at: datetime, observed_at: datetime
    ) -> None:
        """Tell the end of an Attempt; telling it twice is harmless."""
        ...

    async def apply_targets(self, catalog: Catalog) -> int:
        """Declare every Channel and Supply; answers the catalogue revision in force there."""
        ...


@dataclass(frozen=True, slots=True)
class Reserved:
    """A lease was taken."""

    lease_id: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Refused:
    """Why not; nothing was consumed."""

    level: str
    """For example `supply ark-main/seedance`."""
    gate: str
    """`concurrency`, `requests`, `tokens`, `health` or `stale_health`."""
    limit: int
    used: int
    retry_at: datetime | None = None


class Capacity(Protocol):
    """Slots."""

    async def snapshot(self) -> tuple[Mapping[str, CapacityView], Mapping[str, CapacityView], Mapping[str, CapacityView]]:
        """(by kind, by Channel id, by Supply id) at one moment."""
        ...

    async def reserve(
        self, lease_id: str, supply: Supply, channel_health: HealthView, supply_health: HealthView
    ) -> Reserved | Refused:
        """Both or neither; the same lease_id is the same lease."""
        ...

    async def renew(self, lease_ids: Sequence[str]) -> frozenset[str]:
        """Prolong; answers the ids that are lost."""
        ...

    async def release(self, lease_id: str) -> None:
        """Give back; doing it twice is harmless."""
        ...

    async def apply_limits(self, catalog: Catalog) -> int:
        """Declare every level; answers the catalogue revision in force there."""
        ...

    async def apply_health(self, channels: Mapping[str, HealthView], supplies: Mapping[str, HealthView]) -> None:
        """Pass on what health allows."""
        ...


@dataclass(frozen=True, slots=True)
class Priced:
    """One Supply to be priced: its rules and the input it would be sent."""

    supply: Supply
    input: Mapping[str, Any]


class Quotes(Protocol):
    """Prices."""

    async def quote(
        self, kind: str, billing_mode: str, candidates: Sequence[Priced]
    ) -> Mapping[str, QuoteView]:
        """By Supply id, in the catalogue's currency."""
        ...

    async def apply_prices(self, catalog: Catalog) -> int:
        """Declare every price rule; answers the catalogue revision in force there."""
        ...


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a finished job gave."""

    artifacts: tuple[Artifact, ...]
    output: Mapping[str, Any]
    usage: Mapping[str, Any]
    reported_cost: Money | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The provider took it; `delivered` is there when the job finished within the call."""

    provider_task_id: str
    delivered: Delivered | None = None


@dataclass(frozen=True, slots=True)
class Polled:
    """Where a job stands: `queued`, `running`, `succeeded`, `failed` or `cancelled`."""

    state: str
    delivered: Delivered | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What the provider's records say: `accepted`, `not_accepted` or `unknown`."""

    verdict: str
    provider_task_id: str = ""
    evidence: str = ""


class Provider(Protocol):
    """The dialects. A raised Fault of `submit` says what happened; category `unknown` means nobody knows."""

    async def submit(self, channel: Channel, supply: Supply, attempt: Attempt) -> Submitted:
        """Send the job, once."""
        ...

    async def poll(self, channel: Channel, supply: Supply, attempt: Attempt) -> Polled:
        """Ask where it stands; a Fault says nothing about the job."""
        ...

    async def cancel(self, channel: Channel, supply: Supply, attempt: Attempt) -> tuple[bool, Money | None]:
        """(whether it will not run to its end, cost reported for it)."""
        ...

    async def reconcile(self, channel: Channel, supply: Supply, attempt: Attempt) -> Reconciled:
        """Ask the provider's records about an unanswered submission."""
        ...

    async def unresolved_secrets(self, refs: Sequence[str]) -> Mapping[str, str]:
        """References that cannot be read, with the reason."""
        ...

    async def adapters(self) -> frozenset[str]:
        """Names of the dialects on offer."""
        ...
