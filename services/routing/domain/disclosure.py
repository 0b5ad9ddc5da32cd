"""What callers are told about a model before they use it: its price range and what degradation may lose (TIER-6)."""

from dataclasses import dataclass
from decimal import Decimal

from services.routing.domain.catalog import Catalog, Model, Tier
from services.routing.domain.price_shape import span_of


@dataclass(frozen=True, slots=True)
class PriceRange:
    """Lowest and highest figure over the Supplies of a model, for one unit of `per`, in the catalogue's currency.

    Minimum charges are not in it: they depend on the request.
    """

    billing_mode: str
    currency: str
    low: Decimal
    high: Decimal
    per: str


@dataclass(frozen=True, slots=True)
class Loss:
    """What a degraded tier may serve instead."""

    to_profile: str
    drops: tuple[str, ...]
    discloses: str


def price_ranges(catalog: Catalog, model: Model) -> list[PriceRange]:
    """One for each billing mode that a bound Supply is sold in, by mode."""
    found: dict[str, PriceRange] = {}
    for binding in model.bindings:
        supply = catalog.supplies.get(binding.supply)
        for name in supply.prices if supply else ():
            rule = catalog.prices.get(name)
            span = span_of(rule.spec, rule.billing_mode) if rule else None
            rate = _rate(catalog, rule.currency) if rule else None
            if rule is None or span is None or rate is None:
                continue
            low, high, mode = span.low * rate, span.high * rate, rule.billing_mode
            known = found.get(mode)
            if known is not None:
                low, high = min(low, known.low), max(high, known.high)
            found[mode] = PriceRange(mode, catalog.currency, low, high, span.per)
    return [found[mode] for mode in sorted(found)]


def _rate(catalog: Catalog, currency: str) -> Decimal | None:
    return Decimal(1) if currency == catalog.currency else catalog.fx.get(currency)


def losses(catalog: Catalog, model: Model) -> list[Loss]:
    """One for each degradation rule that a bound Supply stands behind, in the order of the bindings."""
    rules = dict.fromkeys(binding.rule for binding in model.bindings if binding.tier is Tier.DEGRADED)
    found = [catalog.rules[name] for name in rules if name in catalog.rules]
    return [Loss(rule.to_profile, _drops(rule.drop_inputs, rule.clamp, rule.set), rule.discloses) for rule in found]


def _drops(dropped: tuple[str, ...], *changed: object) -> tuple[str, ...]:
    """Everything that is not served as asked: inputs left out, then fields that are bounded or set."""
    names = [name for spec in changed if isinstance(spec, dict) for name in spec]
    return tuple(dict.fromkeys((*dropped, *names)))
