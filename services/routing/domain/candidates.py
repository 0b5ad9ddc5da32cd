"""One bound Supply under the fixed steps SEL-4 to SEL-11: assessed once, looked at by every pass of the selection.

The first step that drops it is its fate; what comes after is still computed as far as `waits` needs it: a Supply that
is full *and* too dear is not worth waiting for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from services.routing.domain import availability
from services.routing.domain.availability import HEALTHY, NEVER, Drop
from services.routing.domain.capability import misfits
from services.routing.domain.catalog import Binding, Channel, DegradationRule, Model, RealPerson, Supply, Tier
from services.routing.domain.decision import CapacityView, HealthView, Inputs, QuoteView
from services.routing.domain.degradation import degrade
from services.routing.domain.guardrails import Guard
from services.routing.domain.ordering import Key, Standing, expected_cost, order_key, success_percent
from services.routing.domain.request_facts import Facts, billing_mode, facts_of, normalised

NO_QUOTE = QuoteView(unpriced_reason="no quote")


@dataclass(frozen=True, slots=True)
class Shape:
    """The request as a Supply would be sent it; `rule` and `dropped` tell what degradation changed."""

    input: Mapping[str, Any]
    facts: Facts
    rule: str = ""
    dropped: tuple[str, ...] = ()


class Candidate(NamedTuple):
    """One bound Supply, assessed. `drop` is the step SEL-4..SEL-10 that dropped it, `over` the limit of SEL-11."""

    binding: Binding
    channel: str
    shape: Shape | None
    drop: Drop | None
    over: Drop | None = None
    emergency: str = ""
    """Figures if even an emergency may not pay the quote."""
    quote: Decimal | None = None
    health: str = ""
    success_rate: float | None = None
    free_slots: int | None = None
    restricted: bool = False
    """In the second real-person layer (SEL-7)."""
    key: Key = ()

    def serves(self, emergency: bool) -> bool:
        """Whether it may be reserved now."""
        return self.drop is None and self.affordable(emergency)

    def affordable(self, emergency: bool) -> bool:
        """Whether SEL-10 and SEL-11 let it pass, leaving aside what time may cure."""
        if self.quote is None:
            return False
        return self.over is None or (emergency and not self.emergency)

    def waits_for(self, emergency: bool) -> str:
        """`full`, `heal` or `later` if time alone may make it serve, else empty."""
        return self.drop.waits if self.drop is not None and self.affordable(emergency) else NEVER


class Assessor:
    """Assesses the Supplies of one request; holds what they share."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.mode = billing_mode(inputs.model.kind, inputs.request.billing_mode)
        given = normalised(inputs.model.kind, inputs.model.limits, inputs.request.input)
        self.asked = Shape(given, facts_of(inputs.model.kind, given))
        self.by_rule: dict[str, Shape] = {}
        self.asked_misfits: dict[str, Drop | None] = {}
        self.channel_doors: dict[str, _Door] = {}
        self.kind_full = availability.full(f"all {inputs.model.kind}", HEALTHY, inputs.global_capacity, inputs.now)
        self.kind_slots = availability.free_slots(HEALTHY, inputs.global_capacity)

    def shape_for(self, binding: Binding) -> Shape | Drop:
        """TIER-3: the request as this binding would get it."""
        if binding.tier is not Tier.DEGRADED:
            return self.asked
        if binding.rule not in self.by_rule:
            rule = self.inputs.rules.get(binding.rule)
            if rule is None:
                return Drop("CAT-6", "source_not_configured", f"no degradation rule {binding.rule!r}")
            if not (rule.verified and rule.published):
                return Drop("TIER-3", "rule_not_published", f"rule {rule.id} is not verified and published")
            changed = degrade(rule, self.asked.input)
            facts = facts_of(self.inputs.model.kind, changed.input)
            self.by_rule[binding.rule] = Shape(changed.input, facts, rule.id, changed.dropped)
        return self.by_rule[binding.rule]

    def baseline_quotes(self, bindings: Sequence[Binding]) -> list[Decimal]:
        """COST-5: the quotes of the exact Supplies that fit by hard capability, healthy or not.

        An outage must not raise the limits, so health is not asked. What an operator took off the market holds the
        others down no longer; but where nothing else is left its price still stands, or a word meant to spare a Supply
        would let the fallbacks cost what they like.
        """
        in_use: list[Decimal] = []
        taken_out: list[Decimal] = []
        for binding in bindings:
            supply = self.inputs.supplies.get(binding.supply) if binding.tier is Tier.EXACT else None
            channel = self.inputs.channels.get(supply.channel) if supply else None
            quote = self.inputs.quotes.get(binding.supply)
            if supply is None or channel is None or quote is None or quote.amount is None:
                continue
            if self.misfit(supply, self.asked.facts) is None:
                (taken_out if availability.forbidden(channel, supply) else in_use).append(quote.amount)
        return in_use or taken_out

    def misfit(self, supply: Supply, facts: Facts) -> Drop | None:
        """SEL-5; what the request as asked needs is compared once, though the baseline asks too."""
        if facts is not self.asked.facts:
            return self._misfit(supply, facts)
        if supply.id not in self.asked_misfits:
            self.asked_misfits[supply.id] = self._misfit(supply, facts)
        return self.asked_misfits[supply.id]

    def _misfit(self, supply: Supply, facts: Facts) -> Drop | None:
        """The needs that the Supply does not meet, and the billing mode (COST-1)."""
        if supply.kind is not facts.kind:
            return Drop("SEL-5", "capability", f"needs {facts.kind}, admits {supply.kind}")
        found = misfits(supply.capabilities, facts)
        if found:
            return Drop("SEL-5", "capability", "; ".join(misfit.figures for misfit in found))
        modes = [self.inputs.prices[rule].billing_mode for rule in supply.prices if rule in self.inputs.prices]
        if modes and self.mode not in modes:
            return Drop("SEL-5", "billing_mode", f"needs {self.mode}, offers {', '.join(sorted(set(modes)))}")
        return None

    def assess(self, binding: Binding, guard: Guard) -> Candidate:
        """Walk one Supply through the steps."""
        supply = self.inputs.supplies.get(binding.supply)
        channel = self.inputs.channels.get(supply.channel) if supply else None
        if supply is None or channel is None:
            missing = f"supply {binding.supply!r}" if supply is None else f"channel {supply.channel!r}"
            return Candidate(binding, "", None, Drop("CAT-6", "source_not_configured", f"no {missing}"))
        shape = self.shape_for(binding)
        if isinstance(shape, Drop):
            return Candidate(binding, channel.id, None, shape)
        doors = self._doors(channel, supply)
        drop = self._standing_drop(channel, supply, shape.facts) or self._passing_drop(supply, doors)
        return self._priced(binding, supply, shape, drop, doors, guard)

    def _standing_drop(self, channel: Channel, supply: Supply, facts: Facts) -> Drop | None:
        """SEL-4, SEL-5, SEL-6: what time does not cure."""
        drop = availability.forbidden(channel, supply) or self.misfit(supply, facts)
        if drop is None and facts.real_person and supply.real_person is RealPerson.FORBIDDEN:
            return Drop("SEL-6", "real_person_forbidden", "shows real people, the supply admits none")
        return drop

    def _passing_drop(self, supply: Supply, doors: "_Doors") -> Drop | None:
        """SEL-8 for both objects, then SEL-9 for the kind and both, then a Retry-After of an earlier Attempt."""
        channel, own = doors
        drop = channel.ill or own.ill or self.kind_full or channel.full or own.full
        not_before = self.inputs.not_before.get(supply.id) if drop is None else None
        if not_before is not None and not_before > self.inputs.now:
            figures = f"supply {supply.id} not before {availability.clock_time(not_before)}"
            return Drop("ATT-3a", "retry_after", figures, availability.LATER, not_before)
        return drop

    def _doors(self, channel: Channel, supply: Supply) -> "_Doors":
        inputs = self.inputs
        if channel.id not in self.channel_doors:
            health = inputs.channel_health.get(channel.id, HEALTHY)
            capacity = inputs.channel_capacity.get(channel.id) or availability.unseen_capacity(channel.limits)
            self.channel_doors[channel.id] = _door(f"channel {channel.id}", health, capacity, inputs.now)
        health = inputs.supply_health.get(supply.id, HEALTHY)
        capacity = inputs.supply_capacity.get(supply.id) or availability.unseen_capacity(supply.limits)
        return _Doors(self.channel_doors[channel.id], _door(f"supply {supply.id}", health, capacity, inputs.now))

    def _priced(
        self, binding: Binding, supply: Supply, shape: Shape, drop: Drop | None, doors: "_Doors", guard: Guard
    ) -> Candidate:
        """SEL-10 and SEL-11, and what the candidate would be ordered by."""
        quoted = self.inputs.quotes.get(supply.id, NO_QUOTE)
        view = doors.supply.health
        state = availability.worse(doors.channel.health, view)
        slots = availability.fewest(self.kind_slots, doors.channel.slots, doors.supply.slots)
        restricted = shape.facts.real_person and supply.real_person is RealPerson.RESTRICTED
        over, emergency = None, ""
        key: Key = ()
        if quoted.amount is None:
            drop = drop or Drop("SEL-10", "unpriced", quoted.unpriced_reason)
        else:
            breach = guard.breach(binding.tier, quoted.amount)
            if breach is not None:
                over = Drop("SEL-11", *breach)
                emergency = guard.emergency_breach(quoted.amount)
            key = self._key(binding, supply, view, state, quoted.amount, slots)
        return Candidate(
            binding,
            supply.channel,
            shape,
            drop,
            over,
            emergency,
            quoted.amount,
            state,
            view.success_rate,
            slots,
            restricted,
            key,
        )

    def _key(
        self, binding: Binding, supply: Supply, view: HealthView, state: str, quote: Decimal, slots: int | None
    ) -> Key:
        percent = success_percent(view, self.inputs.policy.min_samples)
        standing = Standing(
            supply.id,
            availability.HEALTH_RANKS.get(state, availability.UNHEALTHY),
            percent,
            expected_cost(quote, percent, supply.charges_on_failure),
            slots,
            binding.priority,
        )
        return order_key(self.inputs.policy.order, standing)


class _Door(NamedTuple):
    """What health and capacity say of one object."""

    health: HealthView
    ill: Drop | None
    full: Drop | None
    slots: int | None


class _Doors(NamedTuple):
    """Both objects that an Attempt passes. The Channel's is worked out once for all its Supplies."""

    channel: _Door
    supply: _Door


def _door(name: str, health: HealthView, capacity: CapacityView, now: datetime) -> _Door:
    return _Door(
        health,
        availability.unhealthy(name, health, capacity),
        availability.full(name, health, capacity, now),
        availability.free_slots(health, capacity),
    )


def inputs_to_quote(
    model: Model, rules: Mapping[str, DegradationRule], given: Mapping[str, Any]
) -> dict[str, Mapping[str, Any]]:
    """What is to be priced before `select` can be called: by Supply id, the input that it would be sent.

    Every bound Supply is there, unhealthy and unfitting ones too: the baseline needs some of them, and quoting reads
    nothing but the input. A degraded binding whose rule is missing is left out; it is dropped anyway.
    """
    asked = normalised(model.kind, model.limits, given)
    result: dict[str, Mapping[str, Any]] = {}
    for binding in model.bindings:
        if binding.tier is not Tier.DEGRADED:
            result[binding.supply] = asked
        elif binding.rule in rules:
            result[binding.supply] = degrade(rules[binding.rule], asked).input
    return result
