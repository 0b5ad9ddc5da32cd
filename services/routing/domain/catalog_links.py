"""Names that one declaration has for another: whether they are there and fit together (CAT-1, CAT-6).

With `merge` a name may also mean an object that the file leaves as it is; `kept` holds those.
"""

from collections.abc import Iterator, Mapping

from services.routing.domain.catalog import (
    Catalog,
    Channel,
    DegradationRule,
    Kind,
    Model,
    Policy,
    Price,
    Supply,
    Tenant,
    Tier,
)
from services.routing.domain.catalog_file import CatalogFile, Declared, ObjectKind, Value
from services.routing.domain.publication import Dialects

Complaint = tuple[str, str]
RECORDS = frozenset({"list", "lookup"})
"""Ways of finding out that a submission was not taken by its absence."""


def link_faults(file: CatalogFile, kept: Catalog | None, adapters: Dialects | None) -> list[Complaint]:
    """Every name that leads nowhere or to the wrong thing. `adapters` None = nobody could be asked."""
    known = _Known(file, kept)
    found: list[Complaint] = []
    for declared in file.declared:
        match declared.value:
            case Channel() as channel:
                found.extend(_channel(declared, channel, adapters))
            case Supply() as supply:
                found.extend(_supply(declared, supply, known))
            case Price() as price:
                found.extend(_price(declared, price, file, kept))
            case Model() as model:
                found.extend(_model(declared, model, known))
            case Tenant() as tenant:
                found.extend(_tenant(declared, tenant, known))
                found.extend(_spend(declared, tenant, file, kept))
            case _:
                pass
    found.extend(_rule_cycles(file))
    return found


class _Known:
    """Objects by sort and id: the file's own first."""

    def __init__(self, file: CatalogFile, kept: Catalog | None) -> None:
        self.by_kind: dict[ObjectKind, dict[str, Value]] = {kind: {} for kind in ObjectKind}
        if kept is not None:
            self.by_kind[ObjectKind.CHANNEL].update(kept.channels)
            self.by_kind[ObjectKind.SUPPLY].update(kept.supplies)
            self.by_kind[ObjectKind.PRICE].update(kept.prices)
            self.by_kind[ObjectKind.POLICY].update(kept.policies)
            self.by_kind[ObjectKind.DEGRADATION_RULE].update(kept.rules)
            self.by_kind[ObjectKind.MODEL].update(kept.models)
        for declared in file.declared:
            self.by_kind[declared.kind][declared.id] = declared.value

    def missing(self, kind: ObjectKind, name: str, path: str) -> Iterator[Complaint]:
        """A fault if there is no such object; an empty name was reported where it was read."""
        if name and name not in self.by_kind[kind]:
            yield path, f"no {kind.replace('_', ' ')} {name!r}"


def _channel(declared: Declared, channel: Channel, adapters: Dialects | None) -> Iterator[Complaint]:
    if adapters is None or not channel.adapter:
        return
    if channel.adapter not in adapters:
        names = ", ".join(sorted(adapters))
        yield f"{declared.path}.adapter", f"source_not_configured: no adapter {channel.adapter!r}; there are {names}"
    elif channel.reconcile_by and channel.reconcile_by not in adapters[channel.adapter]:
        ways = ", ".join(sorted(adapters[channel.adapter]))
        lacking = f"source_not_configured: adapter {channel.adapter!r} has no such way; there is {ways}"
        yield f"{declared.path}.reconcile_by", lacking


def _supply(declared: Declared, supply: Supply, known: _Known) -> Iterator[Complaint]:
    yield from known.missing(ObjectKind.CHANNEL, supply.channel, f"{declared.path}.channel")
    for index, price in enumerate(supply.prices):
        yield from known.missing(ObjectKind.PRICE, price, f"{declared.path}.prices[{index}]")


def _price(declared: Declared, price: Price, file: CatalogFile, kept: Catalog | None) -> Iterator[Complaint]:
    yield from _rate(f"{declared.path}.currency", price.currency, file, kept)


def _spend(declared: Declared, tenant: Tenant, file: CatalogFile, kept: Catalog | None) -> Iterator[Complaint]:
    if tenant.spend is not None:
        yield from _rate(f"{declared.path}.quotas.spend.currency", tenant.spend.currency, file, kept)


def _rate(path: str, currency: str, file: CatalogFile, kept: Catalog | None) -> Iterator[Complaint]:
    """Amounts are converted into the catalogue's currency and back."""
    rates: Mapping[str, object] = {**(kept.fx if kept else {}), **file.fx}
    if currency and currency != file.currency_over(kept.currency if kept else None) and currency not in rates:
        yield path, f"no rate for {currency} in fx"


def _model(declared: Declared, model: Model, known: _Known) -> Iterator[Complaint]:
    yield from known.missing(ObjectKind.POLICY, model.policy, f"{declared.path}.policy")
    first: dict[str, int] = {}
    for index, binding in enumerate(model.bindings):
        path = f"{declared.path}.bindings[{index}]"
        yield from known.missing(ObjectKind.SUPPLY, binding.supply, f"{path}.supply")
        if binding.supply in first:
            yield f"{path}.supply", f"{binding.supply!r} is bound twice, first at bindings[{first[binding.supply]}]"
        first.setdefault(binding.supply, index)
        supply = known.by_kind[ObjectKind.SUPPLY].get(binding.supply)
        if isinstance(supply, Supply) and supply.kind is not model.kind:
            yield f"{path}.supply", f"{binding.supply!r} makes {supply.kind}, the model is of kind {model.kind}"
        if binding.tier is Tier.DEGRADED:
            yield from known.missing(ObjectKind.DEGRADATION_RULE, binding.rule, f"{path}.rule")
            rule = known.by_kind[ObjectKind.DEGRADATION_RULE].get(binding.rule)
            if isinstance(rule, DegradationRule) and rule.from_profile != model.profile:
                yield (
                    f"{path}.rule",
                    f"{rule.id!r} is for profile {rule.from_profile!r}, the model has {model.profile!r}",
                )


def _tenant(declared: Declared, tenant: Tenant, known: _Known) -> Iterator[Complaint]:
    for index, model in enumerate(tenant.models):
        if model != "*":
            yield from known.missing(ObjectKind.MODEL, model, f"{declared.path}.models[{index}]")


def doubt_faults(
    file: CatalogFile, kept: Catalog | None, adapters: Dialects | None, settle_s: float
) -> Iterator[Complaint]:
    """Policies under which no lost submission of a clip could ever be found absent: its time for finding out would be
    over before the records of some Channel prove anything, `settle_s` after the submission timeout (ATT-6)."""
    known = _Known(file, kept)
    for declared in file.of_kind(ObjectKind.POLICY):
        policy = declared.value
        if not isinstance(policy, Policy):
            continue
        channels = [item for item in _channels_of(policy, known) if _proves_absence(item, adapters)]
        if not channels:
            continue
        slowest = max(channels, key=lambda item: item.timeouts.submit_s)
        least = slowest.timeouts.submit_s + settle_s
        if policy.uncertain_deadline_s < least:
            text = (
                f"must be at least {least:g}: timeouts.submit_s {slowest.timeouts.submit_s:g} of channel {slowest.id!r}"
            )
            text += f" + POINTSMAN_RECONCILE_SETTLE_S {settle_s:g}, before which its records prove no absence"
            yield f"{declared.path}.uncertain_deadline_s", text


def _channels_of(policy: Policy, known: _Known) -> Iterator[Channel]:
    """Where clips are made under it."""
    for model in known.by_kind[ObjectKind.MODEL].values():
        if not isinstance(model, Model) or model.policy != policy.id or model.kind is not Kind.VIDEO:
            continue
        for binding in model.bindings:
            supply = known.by_kind[ObjectKind.SUPPLY].get(binding.supply)
            channel = known.by_kind[ObjectKind.CHANNEL].get(supply.channel) if isinstance(supply, Supply) else None
            if isinstance(channel, Channel):
                yield channel


def _proves_absence(channel: Channel, adapters: Dialects | None) -> bool:
    """Whether lost submissions are looked for in its records."""
    ways = (adapters or {}).get(channel.adapter, frozenset())
    return bool(RECORDS & ({channel.reconcile_by} if channel.reconcile_by else ways))


def _rule_cycles(file: CatalogFile) -> Iterator[Complaint]:
    """A degraded profile that leads back to where it came from is no lesser one."""
    moves = [
        (declared.path, declared.value.from_profile, declared.value.to_profile)
        for declared in file.declared
        if isinstance(declared.value, DegradationRule) and declared.value.from_profile != declared.value.to_profile
    ]
    steps: dict[str, set[str]] = {}
    for _, start, end in moves:
        steps.setdefault(start, set()).add(end)
    for path, start, end in moves:
        if _leads(steps, end, start):
            yield f"{path}.to_profile", f"rules lead from {end!r} back to {start!r}"


def _leads(steps: Mapping[str, set[str]], start: str, end: str) -> bool:
    pending, seen = [start], {start}
    while pending:
        for profile in steps.get(pending.pop(), ()):
            if profile == end:
                return True
            if profile not in seen:
                seen.add(profile)
                pending.append(profile)
    return False
