"""What is on offer in the tests of dispatch: one model of clips, bound to a few Supplies."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from libs.faults.fault import Fault
from services.routing.domain.catalog import (
    Binding,
    Catalog,
    Channel,
    Kind,
    Limits,
    Model,
    Policy,
    Price,
    Supply,
    Tier,
)

MODEL = "clip"


def supply(name: str, slots: int = 5, **changes: Any) -> Supply:
    """A video Supply `x/clip` of Channel `x`."""
    channel = name.partition("/")[0]
    made = Supply(
        id=name,
        revision=1,
        channel=channel,
        upstream_model="clip-1",
        kind=Kind.VIDEO,
        capabilities={"duration_s": {"min": 1, "max": 15}},
        limits=Limits(concurrency=slots),
        prices=("second",),
    )
    return replace(made, **changes)


def catalog(*supplies: Supply, policy: Mapping[str, Any] | None = None, **changes: Any) -> Catalog:
    """A catalogue with one model `clip`, bound exactly to `supplies`."""
    bound = supplies or (supply("a/clip"), supply("b/clip"))
    channels = {s.channel: Channel(s.channel, 1, "ark", "http://127.0.0.1:1", "env:KEY") for s in bound}
    rules = Policy(id="stable", revision=1, **(dict(policy or {})))
    bindings = tuple(Binding(s.id, Tier.EXACT) for s in bound)
    model = Model(MODEL, 1, Kind.VIDEO, "stable", profile="933", enabled=True, published=True, bindings=bindings)
    made = Catalog(
        revision=1,
        channels=channels,
        supplies={s.id: s for s in bound},
        prices={"second": Price("second", 1, 1, "CNY", "per_second", {"rate": "1.00"})},
        policies={"stable": rules},
        models={MODEL: model},
    )
    return replace(made, **changes)


@dataclass
class FakeCatalog:
    """`CatalogReader` over revisions kept by hand."""

    revisions: list[Catalog]
    away: Fault | None = None
    unseen: int = 0  # newest revisions that this process has not looked at yet

    async def current(self) -> Catalog:
        """The newest one that was looked at, while it can be read."""
        if self.away:
            raise self.away
        return self.revisions[-1 - self.unseen]

    async def newest(self) -> Catalog:
        """A look."""
        self.unseen = 0
        return await self.current()

    async def at(self, revision: int) -> Catalog:
        """That one."""
        return next(item for item in self.revisions if item.revision == revision)
