"""The small catalogue of `tests/cases/catalogs/market.yaml`, as text that a test changes in one place."""

import copy
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from libs.faults.fault import Fault
from services.routing.app.catalog_desk import CatalogDesk, CatalogView
from services.routing.domain.catalog_text import load
from services.routing.store.catalog_memory import MemoryCatalogStore

MARKET = (Path(__file__).parents[2] / "cases" / "catalogs" / "market.yaml").read_text()
NOW = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)
Edit = Callable[[dict[str, Any]], object]


def edited(*edits: Edit) -> str:
    """The market's text after these edits of its plain value."""
    value = copy.deepcopy(load(MARKET))
    for edit in edits:
        edit(value)
    return yaml.safe_dump(value, sort_keys=False)


class Dialects:
    """What provider_adapter would say; the part of `ports.Provider` that the catalogue needs."""

    def __init__(self) -> None:
        none = frozenset({"none"})
        openai = none | {"idempotency_key"}
        self.known = {"ark": frozenset({"list"}), "openai": openai, "local-ocr": none, "fal": none}
        self.unresolved: dict[str, str] = {}
        self.away = False
        self.stumbles = 0
        self.asked: list[Sequence[str]] = []

    async def adapters(self) -> Mapping[str, frozenset[str]]:
        """See the port."""
        self.stumbles -= 1
        if self.away or self.stumbles >= 0:
            raise Fault.of("peer_unavailable", "provider_adapter cannot be reached")
        return self.known

    async def unresolved_secrets(self, refs: Sequence[str]) -> Mapping[str, str]:
        """See the port."""
        self.asked.append(refs)
        return {ref: self.unresolved[ref] for ref in refs if ref in self.unresolved}


class StillClock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        """See the port."""
        return NOW

    def monotonic(self) -> float:
        """See the port."""
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        """See the port."""
        self.seconds += seconds


def new_desk(clock: StillClock, dialects: Dialects | None = None) -> CatalogDesk:
    """A desk over an empty memory store."""
    store = MemoryCatalogStore()
    return CatalogDesk(store, CatalogView(store, clock), dialects or Dialects(), clock)
