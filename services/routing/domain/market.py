"""What a catalogue revision fixes of every decision about one Public Model, worked out once and kept.

Laws of this file:
- nothing here looks at a request, at health, at what is in use, at a quote or at the time;
- a market is known by the very objects it was made from. Inputs are frozen, so the same object is the same value, and
  inputs with any other object get a market of their own;
- `gather` hands the same objects to every decision of one catalogue revision. A replay brings its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from libs.kernel.canonical import canonical_text
from services.routing.domain.availability import Drop, forbidden, unseen_capacity
from services.routing.domain.catalog import Binding, Channel, Kind, RealPerson, Spec, Supply, Tier
from services.routing.domain.decision import CapacityView, Inputs

NOTHING_KNOWN = CapacityView()
KEPT = 128
"""Markets that are remembered: one for each model that is asked for, and a few of revisions before."""


NO_WINDOW = (0, "")


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What SEL-5 compares a request with. Supplies that declare the same share one."""

    kind: Kind
    capabilities: Spec
    modes: tuple[str, ...]
    """Billing modes that its price rules offer, in the order of their names; empty = none is known."""
    window: tuple[int, str] = NO_WINDOW
    """The narrowest window of tokens that a request passes there, and whose it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """One binding and what it leads to. Where `missing` says that the catalogue does not name it, the rest is empty."""

    place: int
    """In the order of Supply ids over all bindings of the model: what decides last between two candidates."""
    binding: Binding
    id: str
    tier: Tier
    priority: int
    channel: str = ""
    real_person: RealPerson = RealPerson.ALLOWED
    charges_on_failure: bool = False
    missing: Drop | None = None
    forbidden: Drop | None = None
    fit: int = 0
    """Place in `Market.fits`."""
    told: tuple[str, str, str, int] = ("", "", "", 0)
    """Its part of a fate: id, Channel, tier and priority."""
    unseen: CapacityView = NOTHING_KNOWN
    """Its capacity as long as nothing is known of it."""


class _Tier:
    """The bindings of one tier: those that miss what they name, and the others by degradation rule (empty = none)."""

    def __init__(self, bounds: tuple[Bound, ...]) -> None:
        self.missing = tuple(bound for bound in bounds if bound.missing)
        named = [bound for bound in bounds if not bound.missing]
        rules = dict.fromkeys(bound.binding.rule if bound.tier is Tier.DEGRADED else "" for bound in named)
        self.by_rule = {
            rule: tuple(b for b in named if b.tier is not Tier.DEGRADED or b.binding.rule == rule) for rule in rules
        }
        self.named = tuple(named)
        self.in_use = tuple(bound for bound in named if bound.forbidden is None)


class Market:
    """The bindings of a model in the order of Supply ids, by tier, with everything that they lead to."""

    def __init__(self, inputs: Inputs) -> None:
        self._supplies, self._channels, self._prices = inputs.supplies, inputs.channels, inputs.prices
        self._rest = {"model": inputs.model, "policy": inputs.policy, "rules": inputs.rules}
        self._fits: dict[str, tuple[int, Fit]] = {}
        bindings = sorted(inputs.model.bindings, key=lambda binding: binding.supply)
        self.bounds = tuple(self._bound(place, binding) for place, binding in enumerate(bindings))
        self.tiers = {tier: _Tier(tuple(bound for bound in self.bounds if bound.tier is tier)) for tier in Tier}
        self.fits = tuple(fit for _, fit in self._fits.values())

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Canonical JSON of the fields of `Inputs` that the market was made from, by their names."""
        parts = {"supplies": self._supplies, "channels": self._channels, "prices": self._prices, **self._rest}
        return {name: canonical_text(part) for name, part in parts.items()}

    def _bound(self, place: int, binding: Binding) -> Bound:
        supply = self._supplies.get(binding.supply)
        channel = self._channels.get(supply.channel) if supply else None
        name, tier, priority = binding.supply, binding.tier, binding.priority
        known = (place, binding, name, tier, priority)
        if supply is None or channel is None:
            what = f"supply {binding.supply!r}" if supply is None else f"channel {supply.channel!r}"
            missing = Drop("CAT-6", "source_not_configured", f"no {what}")
            return Bound(*known, missing=missing, told=(name, "", tier.value, priority))
        return Bound(
            *known,
            channel=channel.id,
            told=(name, channel.id, tier.value, priority),
            real_person=supply.real_person,
            charges_on_failure=supply.charges_on_failure,
            forbidden=forbidden(channel, supply),
            fit=self._fit(supply),
            unseen=unseen_capacity(supply.limits),
        )

    def _fit(self, supply: Supply) -> int:
        prices = self._prices
        modes = tuple(sorted({prices[rule].billing_mode for rule in supply.prices if rule in prices}))
        window = window_of(self._channels[supply.channel], supply)
        key = f"{supply.kind} {modes} {window} {supply.capabilities!r}"
        return self._fits.setdefault(key, (len(self._fits), Fit(supply.kind, supply.capabilities, modes, window)))[0]


def window_of(channel: Channel, supply: Supply) -> tuple[int, str]:
    """Tokens a minute that a Channel and a Supply both admit, and who admits fewest; 0 = no limit."""
    narrow = [(item.limits.tpm, name) for item, name in ((channel, f"channel {channel.id}"), (supply, "the supply"))]
    return min((limit for limit in narrow if limit[0] > 0), default=NO_WINDOW)


_Parts = tuple[object, ...]
_markets: dict[tuple[int, ...], tuple[_Parts, Market]] = {}
"""By the identities of the parts; the parts are held, so that an identity cannot come to mean another object."""


def market_of(inputs: Inputs) -> Market:
    """The market of these inputs, from memory where the same objects were seen before."""
    parts = (inputs.model, inputs.policy, inputs.supplies, inputs.channels, inputs.rules, inputs.prices)
    key = tuple(map(id, parts))
    known = _markets.get(key)
    if known is None:
        while len(_markets) >= KEPT:
            del _markets[next(iter(_markets))]
        known = _markets[key] = (parts, Market(inputs))
    return known[1]
