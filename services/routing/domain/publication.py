"""The publish gate (CAT-3, CAT-7): every reason why a model may not be open to callers.

Asked when a model is published, and again whenever what it is made of changes. A path names the place inside the
model's declaration (`bindings[1].supply`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from services.routing.domain.catalog import Binding, Catalog, Model, Order, Policy, Tier
from services.routing.domain.verification import Verification, lacking_evidence

Reason = tuple[str, str]
"""(path, reason)"""


Dialects = Mapping[str, frozenset[str]]
"""Adapter -> ways to resolve an unanswered submission that a Channel of it may name."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What only provider_adapter can say: the dialects it has, each with its ways to resolve an unanswered submission,
    and the secrets it cannot read.

    `adapters` None = it could not be asked, and then nothing is published; `silence` says why.
    """

    adapters: Dialects | None = None
    unresolved: Mapping[str, str] = field(default_factory=dict)
    """Secret reference -> why it cannot be read. Never the secret."""
    silence: str = "provider_adapter was not asked"
    verified: Mapping[str, Verification] = field(default_factory=dict)
    """Supply -> its newest verification that has ended (CAT-7)."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a model is open, and if not, every reason with its path."""

    model: str
    published: bool
    reasons: tuple[Reason, ...] = ()

    def words(self) -> tuple[str, ...]:
        """`path: reason` lines."""
        return tuple(f"{path}: {reason}" if path else reason for path, reason in self.reasons)


def gate(model: Model, catalog: Catalog, around: Surroundings) -> tuple[Reason, ...]:
    """Every reason against publishing; none = it may be."""
    return tuple(_reasons(model, catalog, around))


def _reasons(model: Model, catalog: Catalog, around: Surroundings) -> Iterator[Reason]:
    if not any(binding.tier is Tier.EXACT for binding in model.bindings):
        yield "bindings", "at least one exact supply is needed"
    policy = catalog.policies.get(model.policy)
    if policy is None:
        yield "policy", f"source_not_configured: no policy {model.policy!r}"
    else:
        yield from (("policy", f"{policy.id}: {reason}") for reason in incoherences(policy))
    if around.adapters is None:
        yield "", f"secrets and adapters could not be checked: {around.silence}"
    for index, binding in enumerate(model.bindings):
        yield from _binding(f"bindings[{index}]", binding, catalog, around)
    yield from _evidence(model, catalog, around)


def _binding(path: str, binding: Binding, catalog: Catalog, around: Surroundings) -> Iterator[Reason]:
    supply = catalog.supplies.get(binding.supply)
    if supply is None:
        yield f"{path}.supply", f"source_not_configured: no supply {binding.supply!r}"
        return
    if not supply.prices:
        yield f"{path}.supply", f"supply {supply.id!r} has no price rule"
    for price in supply.prices:
        if price not in catalog.prices:
            yield f"{path}.supply", f"source_not_configured: no price {price!r} of supply {supply.id!r}"
    if binding.tier is Tier.DEGRADED:
        yield from _rule(path, binding, catalog)
    channel = catalog.channels.get(supply.channel)
    if channel is None:
        yield f"{path}.supply", f"source_not_configured: no channel {supply.channel!r}"
        return
    if around.adapters is not None and channel.adapter not in around.adapters:
        yield f"{path}.supply", f"source_not_configured: channel {channel.id!r} needs adapter {channel.adapter!r}"
    if channel.secret in around.unresolved:
        why = around.unresolved[channel.secret]
        yield f"{path}.supply", f"secret {channel.secret} of channel {channel.id!r} cannot be read: {why}"


def _rule(path: str, binding: Binding, catalog: Catalog) -> Iterator[Reason]:
    rule = catalog.rules.get(binding.rule)
    if rule is None:
        yield f"{path}.rule", f"source_not_configured: no degradation rule {binding.rule!r}"
        return
    missing = [name for name, done in (("verified", rule.verified), ("published", rule.published)) if not done]
    if missing:
        yield f"{path}.rule", f"rule {rule.id!r} is not {' and not '.join(missing)}"


def _evidence(model: Model, catalog: Catalog, around: Surroundings) -> Iterator[Reason]:
    """CAT-7: an alternative needs evidence. One exact Supply needs none: there is nothing it stands in for."""
    lacking = [
        (index, binding, reason)
        for index, binding in enumerate(model.bindings)
        if (supply := catalog.supplies.get(binding.supply)) is not None
        and (reason := lacking_evidence(supply, around.verified.get(supply.id)))
    ]
    firsts = [index for index, binding, _ in lacking if binding.tier is Tier.EXACT][:1]
    for index, binding, reason in lacking:
        if index not in firsts:
            role = "a second exact one" if binding.tier is Tier.EXACT else f"a {binding.tier} one"
            yield (
                f"bindings[{index}].supply",
                f"supply {binding.supply!r} is {role}, needs evidence and {reason}: "
                f"run `pointsman supply verify {binding.supply}`, or set `evidence: waived` with an evidence_reason",
            )


def incoherences(policy: Policy) -> Iterator[str]:
    """CAT-3: limits that cannot be meant."""
    one, zero = Decimal(1), Decimal(0)
    if policy.order is Order.STABLE_FIRST and policy.stable_cost_multiplier_limit < one:
        yield "stable_cost_multiplier_limit is below 1: the cheapest exact supply itself would be over it"
    if policy.fallback_cost_multiplier_limit <= zero:
        yield "fallback_cost_multiplier_limit is 0: no fallback could ever serve"
    if policy.absolute_cost_limit <= zero:
        yield "absolute_cost_limit is 0: nothing could ever be paid"
    if policy.emergency_availability and policy.emergency_cost_limit < policy.absolute_cost_limit:
        yield "emergency_cost_limit is below absolute_cost_limit: an emergency would admit less than a normal day"
