"""What history is decided under instead: another policy, another price list, another catalogue file (SEL-23). Pure.

Laws of this file:
- only what the alternative speaks of changes. Request, health, leases, rate windows, Supplies tried, the Retry-After of
  others and the time are as they were; a Supply that was not bound then is taken as healthy and with nothing in use;
- quotes are never made here: what needs new ones says under which prices, and cost_quote is asked;
- `None` says that the alternative has no word on this decision, which then stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from services.routing.domain.admission import may_use
from services.routing.domain.attempts import spent_in
from services.routing.domain.catalog import Catalog, Channel, Limits, Policy, Price, Supply
from services.routing.domain.decision import CapacityView, Inputs
from services.routing.domain.offer import offer_of


@dataclass(frozen=True, slots=True)
class PriceList:
    """Rules and rates as cost_quote is told them."""

    currency: str
    fx: Mapping[str, Decimal] = field(default_factory=dict)
    """Units of `currency` per unit of each other one."""
    rules: Mapping[str, Price] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolicySwap:
    """`every` for every decision, or, where it is None, each of `by_id` for those that were made under its id."""

    every: Policy | None = None
    by_id: Mapping[str, Policy] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PriceSwap:
    """Rules in place of those of the same id, and rates in place of those of the same currency."""

    currency: str = ""
    """What the rates are units of; empty = of whatever a decision was made in."""
    fx: Mapping[str, Decimal] = field(default_factory=dict)
    rules: Mapping[str, Price] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CatalogSwap:
    """A whole catalogue, its models as open as it declares them."""

    catalog: Catalog


Alternative = PolicySwap | PriceSwap | CatalogSwap


@dataclass(frozen=True, slots=True)
class Altered:
    """The inputs under the alternative, with quotes still to be asked for under `prices` unless that is None.

    Without inputs the Task would have waited with the reason `missing`, as it does live.
    """

    inputs: Inputs | None
    prices: PriceList | None = None
    missing: str = ""


def altered(alternative: Alternative, inputs: Inputs, fx: Mapping[str, Decimal]) -> Altered | None:
    """The inputs of one decision under the alternative; `fx` are the rates that were in force for it."""
    match alternative:
        case PolicySwap():
            return _under_policy(alternative, inputs)
        case PriceSwap():
            return _under_prices(alternative, inputs, fx)
        case CatalogSwap():
            return _under_catalog(alternative.catalog, inputs)


def _under_policy(swap: PolicySwap, inputs: Inputs) -> Altered | None:
    policy = swap.every or swap.by_id.get(inputs.policy.id)
    return None if policy is None else Altered(replace(inputs, policy=policy))


def _under_prices(swap: PriceSwap, inputs: Inputs, fx: Mapping[str, Decimal]) -> Altered | None:
    if swap.currency and swap.currency != inputs.currency:
        return None
    named = {rule for supply in inputs.supplies.values() for rule in supply.prices}
    if not (swap.fx or named & swap.rules.keys()):
        return None
    rules = {key: rule for key, rule in {**inputs.prices, **swap.rules}.items() if key in named}
    rates = {code: rate for code, rate in {**fx, **swap.fx}.items() if code != inputs.currency}
    return Altered(replace(inputs, prices=rules), PriceList(inputs.currency, rates, rules))


def _under_catalog(catalog: Catalog, inputs: Inputs) -> Altered:
    model = catalog.models.get(inputs.model.id)
    if model is None or not (model.published and model.enabled) or model.policy not in catalog.policies:
        return Altered(None, missing=f"model: {inputs.model.id!r} is not published")
    spent = spent_in(inputs.spent, catalog.currency, catalog.fx)
    if spent is None:
        return Altered(None, missing=f"price: no rate from {inputs.spent.currency} to {catalog.currency}")
    offer = offer_of(catalog, model)
    changed = replace(
        inputs,
        model=model,
        policy=catalog.policies[model.policy],
        currency=catalog.currency,
        supplies=offer.supplies,
        channels=offer.channels,
        rules=offer.rules,
        supply_capacity=_gated(inputs.supply_capacity, inputs.supplies, offer.supplies),
        channel_capacity=_gated(inputs.channel_capacity, inputs.channels, offer.channels),
        quotes={},
        spent=spent,
        permitted=may_use(catalog, inputs.request.tenant, model),
        prices=offer.prices,
    )
    return Altered(changed, PriceList(catalog.currency, catalog.fx, offer.prices))


def _gated(
    views: Mapping[str, CapacityView],
    before: Mapping[str, Supply] | Mapping[str, Channel],
    after: Mapping[str, Supply] | Mapping[str, Channel],
) -> dict[str, CapacityView]:
    """What was in use, under the limits of the alternative where it declares others."""
    was: dict[str, Limits] = {key: item.limits for key, item in before.items()}
    return {
        key: view if was.get(key) == after[key].limits else _under_limits(view, after[key].limits)
        for key, view in views.items()
        if key in after
    }


def _under_limits(view: CapacityView, limits: Limits) -> CapacityView:
    return view._replace(configured=limits.concurrency, rpm=limits.rpm, tpm=limits.tpm)
