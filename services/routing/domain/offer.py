"""What a catalogue revision offers under one Public Model: the part of a decision's inputs that every decision shares.

The same catalogue gives the same objects each time, so what is worked out from them (`market`) is worked out once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from services.routing.domain.catalog import Catalog, Channel, DegradationRule, Model, Price, Supply

KEPT = 128
"""Offers that are remembered: one for each model that is asked for, and a few of revisions before."""


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """The Supplies bound to a model with what they lead to, each by id and in the order of ids.

    What the catalogue does not name is not there; a decision says so (CAT-6).
    """

    supplies: Mapping[str, Supply]
    channels: Mapping[str, Channel]
    rules: Mapping[str, DegradationRule]
    prices: Mapping[str, Price]


_offers: dict[tuple[int, str], tuple[Catalog, Offer]] = {}
"""By the identity of the catalogue, which is held so that it cannot come to mean another one, and the model's id."""


def offer_of(catalog: Catalog, model: Model) -> Offer:
    """The offer of a model of that catalogue, from memory where it was asked for before."""
    key = (id(catalog), model.id)
    known = _offers.get(key)
    if known is None:
        while len(_offers) >= KEPT:
            del _offers[next(iter(_offers))]
        known = _offers[key] = (catalog, _offered(catalog, model))
    return known[1]


def _offered(catalog: Catalog, model: Model) -> Offer:
    bound = sorted({binding.supply for binding in model.bindings} & catalog.supplies.keys())
    supplies = {key: catalog.supplies[key] for key in bound}
    used = sorted({supply.channel for supply in supplies.values()} & catalog.channels.keys())
    priced = sorted({key for supply in supplies.values() for key in supply.prices} & catalog.prices.keys())
    return Offer(
        supplies,
        {key: catalog.channels[key] for key in used},
        {binding.rule: catalog.rules[binding.rule] for binding in model.bindings if binding.rule in catalog.rules},
        {key: catalog.prices[key] for key in priced},
    )
