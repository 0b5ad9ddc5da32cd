"""Health as routing sees it, set by hand, and the hook at which a test may strike."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from libs.faults.fault import Fault
from services.routing.domain.catalog import Catalog
from services.routing.domain.decision import HealthView
from services.routing.domain.refusals import HealthCause
from services.routing.domain.task import Attempt, Failure

Effect = Callable[[str], Awaitable[None]]


async def no_effect(_: str) -> None:
    """The effect hook of a world that never crashes."""


@dataclass
class FakeHealth:
    """`Health` with views set by hand; outcomes are kept by Attempt, so that a second telling is seen."""

    effect: Effect = no_effect
    channels: dict[str, HealthView] = field(default_factory=dict)
    supplies: dict[str, HealthView] = field(default_factory=dict)
    outcomes: dict[str, Failure | None] = field(default_factory=dict)
    tellings: int = 0
    unheard_of: set[str] = field(default_factory=set)
    """Supplies that were never declared to it."""
    away: Fault | None = None
    heals: dict[str, datetime] = field(default_factory=dict)
    """Supplies that are healthy again from that time on, by `clock`."""
    clock: Any = None
    causes: dict[tuple[str, str, int], HealthCause] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    """Histories that do not fold, and why."""

    async def cause_of(self, sort: str, name: str, revision: int) -> HealthCause:
        """As set."""
        await self.effect("health.cause_of")
        if self.away:
            raise self.away
        if (sort, name, revision) not in self.causes:
            raise Fault.of("not_found", "no such state")
        return self.causes[sort, name, revision]

    async def breaches(self) -> Mapping[str, str]:
        """As set."""
        if self.away:
            raise self.away
        return dict(self.broken)

    async def snapshot(self) -> tuple[Mapping[str, HealthView], Mapping[str, HealthView]]:
        """As set."""
        await self.effect("health.snapshot")
        if self.away:
            raise self.away
        healed = {key for key, at in self.heals.items() if self.clock.now() >= at}
        return dict(self.channels), {key: view for key, view in self.supplies.items() if key not in healed}

    async def report(
        self, attempt: Attempt, failure: Failure | None, dispatched_at: datetime, observed_at: datetime
    ) -> None:
        """Keep it."""
        await self.effect("health.report")
        if self.away:
            raise self.away
        if attempt.supply in self.unheard_of:
            raise Fault.of("source_not_configured", f"supply {attempt.supply} was never declared to health")
        self.tellings += 1
        self.outcomes[attempt.id] = failure

    async def apply_targets(self, catalog: Catalog) -> int:
        """Not of interest here."""
        return catalog.revision
