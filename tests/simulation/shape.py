"""How large a world is and how fast it lives, drawn from its seed: most are small, a few are large.

In a small world everything that may be set is shorter by the same factor (claims, slots, time limits, jobs, outages,
the patience of customers), so that the same things meet in it; only few of them happen at once, and little is awaited.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from services.provider_adapter.settings import Settings as AdapterSettings
from services.routing.settings import Settings as RoutingSettings
from services.runs.settings import Settings as RunsSettings
from tests.simulation.offers import Offers, drawn_offers, full_offers

REPLICATED = ("routing", "runs", "capacity", "health")
SIZES = {"small": 0.94, "middle": 0.05, "large": 0.01}
"""The share of worlds of each size."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One world's. Seconds are those of the world; `stretch` is 1 where its contexts keep their usual settings."""

    size: str
    stretch: float
    orders: int
    spread_s: float
    """All orders come within this time."""
    strikes_s: float
    mean_s: float
    """Between two misfortunes."""
    replicas: Mapping[str, int]
    shuffle: float
    """The share of callbacks whose turn is drawn."""
    offers: Offers

    @property
    def warm_up_s(self) -> float:
        """Until the first order may come."""
        return max(1.0, 3.0 * self.stretch)

    @property
    def lease_ttl_s(self) -> float:
        """How long a slot is held without a renewal; the end of every world is awaited for so long."""
        return 60.0 if self.size == "large" else 30.0 * self.stretch

    def routing(self) -> RoutingSettings:
        """Routing's settings in this world."""
        s = self.stretch
        return RoutingSettings(
            "memory:", worker_lease_s=15.0 * s, heartbeat_s=4.0 * s, capacity_ttl_s=self.lease_ttl_s,
            renew_interval_s=self.lease_ttl_s / 3, peer_timeout_s=10.0 * s, delivery_s=120.0 * s, drain_s=10.0 * s,
            health_look_s=5.0 * s, poll_give_up_s=1800.0 * s, reconcile_settle_s=self.adapter().settle_s,
        )  # fmt: skip

    def runs(self) -> RunsSettings:
        """The settings of runs in this world."""
        return RunsSettings("memory:", follow_interval_s=0.25 if self.size == "large" else 0.5)

    def adapter(self) -> AdapterSettings:
        """The adapter's settings in this world."""
        return AdapterSettings("", settle_s=10.0 * self.stretch, media_s=120.0 * self.stretch)


def shape_of(rng: random.Random, size: str = "") -> Shape:
    """The shape of a world; `size` where the seed is not to choose it."""
    size = size or rng.choices(list(SIZES), list(SIZES.values()))[0]
    shuffle = rng.choice((0.0, 0.2, 1.0))
    if size == "large":
        replicas = {name: rng.choice((1, 2, 2)) for name in REPLICATED}
        orders, spread_s = rng.randrange(6, 19), rng.choice((5.0, 60.0))
        return Shape(size, 1.0, orders, spread_s, 90.0, rng.choice((3.0, 6.0, 12.0)), replicas, shuffle, full_offers())
    stretch, orders, strikes = (0.5, (4, 6, 9), (3, 6, 10)) if size == "middle" else (0.2, (1, 2, 3, 5), (1, 2, 3, 5))
    strikes_s = 40.0 * stretch
    replicas = {name: rng.choice((1, 1, 2)) for name in REPLICATED} | {"routing": rng.choice((1, 2, 2))}
    return Shape(
        size, stretch, rng.choice(orders), rng.choice((0.0, 5.0, 30.0)) * stretch, strikes_s,
        strikes_s / (rng.choice(strikes) + 1), replicas, shuffle, drawn_offers(rng, stretch),
    )  # fmt: skip
