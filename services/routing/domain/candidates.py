"""One bound Supply under the fixed steps SEL-4 to SEL-11: assessed once, looked at by every pass of the selection.

The first step that drops it is its fate; what comes after is still computed as far as `waits` needs it: a Supply that
is full *and* too dear is not worth waiting for.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from msgspec import Struct

from services.routing.domain.availability import (
    HEALTH_RANKS,
    HEALTHY,
    ILL,
    LATER,
    NEVER,
    UNHEALTHY,
    Drop,
    clock_time,
    door,
    unseen_capacity,
)
from services.routing.domain.calls.sizing import IN_TOKENS, as_digest, tokens_at_once
from services.routing.domain.capability import misfits
from services.routing.domain.catalog import DegradationRule, Model, RealPerson, Tier
from services.routing.domain.decision import CapacityView, HealthView, Inputs, QuoteView
from services.routing.domain.degradation import degrade
from services.routing.domain.guardrails import Guard, Limits
from services.routing.domain.market import Bound, Fit, Market
from services.routing.domain.ordering import KEYS, PERCENT_BITS, UNLIMITED, Key, expected_cost, success_percent
from services.routing.domain.request_facts import Facts, billing_mode, facts_of, normalised

FORBIDDEN, RESTRICTED = RealPerson.FORBIDDEN, RealPerson.RESTRICTED
"""Looked up once: the member of an enumeration is found by a call, and these are asked for by every Supply."""
NO_QUOTE = QuoteView(unpriced_reason="no quote")
NO_KEY: Key = ()
WINDOW = "tokens_at_once"
_new = tuple.__new__
REFUSES_REAL_PERSONS = Drop("SEL-6", "real_person_forbidden", "shows real people, the supply admits none")
REROUTED = "HUMAN-2"
"""The step of a Supply that was passed over because another one was named for the Task."""


class ChannelDoor(NamedTuple):
    """A Channel's part in the fate of its Supplies. `full` and `slots` count the whole kind in."""

    shut: bool
    slots: int
    """`UNLIMITED` where there is no gate of concurrency."""
    state: str
    rank: int
    ill: Drop | None
    full: Drop | None


class Shape(Struct, frozen=True):
    """The request as a Supply would be sent it; `rule` and `dropped` tell what degradation changed."""

    input: Mapping[str, Any]
    facts: Facts
    rule: str = ""
    dropped: tuple[str, ...] = ()


class Candidate(NamedTuple):
    """One bound Supply, assessed and changed no more. `drop` is the step SEL-4..SEL-10 that dropped it, `over` the
    limit of SEL-11."""

    bound: Bound
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
    """What orders it; of one that was dropped or is over a limit, `key_of` tells it where it is asked for."""

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

    def __init__(self, inputs: Inputs, market: Market, asked: Shape) -> None:
        self.inputs = inputs
        self.market = market
        self.mode = billing_mode(inputs.model.kind, inputs.request.billing_mode)
        self.asked = asked
        self.asked_misfits = self._misfits(self.asked)
        self.doors: dict[str, ChannelDoor] = {}
        self.kind = door("all ", inputs.model.kind, HEALTHY, inputs.global_capacity, inputs.now)

    def _misfits(self, shape: Shape) -> list[Drop | None]:
        """SEL-5 for every way in which Supplies of this market declare what they can do."""
        return [
            misfit(fit, shape.facts, self.mode) or (beyond_window(fit, shape) if fit.window[0] else None)
            for fit in self.market.fits
        ]

    def baseline_quotes(self) -> list[Decimal]:
        """COST-5: the quotes of the exact Supplies that fit by hard capability, healthy or not.

        An outage must not raise the limits, so health is not asked. What an operator took off the market holds the
        others down no longer; but where nothing else is left its price still stands, or a word meant to spare a Supply
        would let the fallbacks cost what they like.
        """
        quote_of, unfit = self.inputs.quotes.get, self.asked_misfits
        exact = self.market.tiers[Tier.EXACT]
        for pool in (exact.in_use, exact.named):
            amounts = [
                amount
                for bound in pool
                if unfit[bound.fit] is None and (amount := quote_of(bound.id, NO_QUOTE).weight) is not None
            ]
            if amounts:
                return amounts
        return []

    def assess(self, tier: Tier, guard: Guard) -> list[Candidate]:
        """Walk every Supply of a tier through the steps, in the order of their ids."""
        bound = self.market.tiers[tier]
        found = [Candidate(item, None, item.missing) for item in bound.missing]
        only = self.inputs.request.only_supply
        for rule, items in bound.by_rule.items():
            if only:
                passed_over = passed_over_for(only)
                others = [item for item in items if item.id != only]
                found += [Candidate(item, None, passed_over, quote=self._quote(item)) for item in others]
                items = tuple(item for item in items if item.id == only)
            shape = self.asked if tier is not Tier.DEGRADED else self._degraded(rule)
            if isinstance(shape, Drop):
                found += [Candidate(item, None, shape) for item in items]
            else:
                unfit = self.asked_misfits if shape is self.asked else self._misfits(shape)
                found += look(self, items, shape, unfit, guard.limits(tier))
        if bound.missing or len(bound.by_rule) > 1 or only:
            found.sort(key=lambda candidate: candidate.bound.place)
        return found

    def _quote(self, bound: Bound) -> Decimal | None:
        return self.inputs.quotes.get(bound.id, NO_QUOTE).amount

    def _degraded(self, name: str) -> Shape | Drop:
        """TIER-3: the request as bindings with this rule would get it."""
        rule = self.inputs.rules.get(name)
        if rule is None:
            return Drop("CAT-6", "source_not_configured", f"no degradation rule {name!r}")
        if not (rule.verified and rule.published):
            return Drop("TIER-3", "rule_not_published", f"rule {rule.id} is not verified and published")
        changed = degrade(rule, self.asked.input)
        return Shape(changed.input, facts_of(self.inputs.model.kind, changed.input), rule.id, changed.dropped)

    def channel_door(self, channel_id: str) -> ChannelDoor:
        """What health and capacity say of a Channel, worked out once for all its Supplies."""
        inputs, channel = self.inputs, self.inputs.channels[channel_id]
        view = inputs.channel_health.get(channel_id, HEALTHY)
        capacity = inputs.channel_capacity.get(channel_id) or unseen_capacity(channel.limits)
        ill, full, slots = door("channel ", channel_id, view, capacity, inputs.now)
        full, rank = self.kind.full or full, HEALTH_RANKS.get(view.state, UNHEALTHY)
        free = UNLIMITED if slots is None else slots
        if self.kind.slots is not None and self.kind.slots < free:
            free = self.kind.slots
        values = (ill is not None or full is not None, free, view.state, rank, ill, full)
        made = self.doors[channel_id] = _new(ChannelDoor, values)
        return made

    def passing_drop(self, bound: Bound, view: HealthView, capacity: CapacityView, channel: ChannelDoor) -> Drop | None:
        """SEL-8 for both objects, then SEL-9 for the kind and both, then a Retry-After of an earlier Attempt."""
        own = door("supply ", bound.id, view, capacity, self.inputs.now)
        return channel.ill or own.ill or channel.full or own.full or self.held(bound)

    def held(self, bound: Bound) -> Drop | None:
        """A Retry-After of an earlier Attempt (ATT-3a)."""
        until = self.inputs.not_before.get(bound.id)
        if until is None or until <= self.inputs.now:
            return None
        return Drop("ATT-3a", "retry_after", f"supply {bound.id} not before {clock_time(until)}", LATER, until)


def look(
    assessor: Assessor, bounds: Sequence[Bound], shape: Shape, unfit: Sequence[Drop | None], limits: Limits
) -> list[Candidate]:
    """Supplies that would be sent the same request, under SEL-4 to SEL-11, and what each would be ordered by: one loop,
    without calls on the way of a Supply that nothing is wrong with. A decision goes round it for every Supply."""
    inputs, doors, ceiling = assessor.inputs, assessor.doors, limits.ceiling
    samples, ordered = inputs.policy.min_samples, KEYS[inputs.policy.order]
    watched, real_person = bool(inputs.not_before), shape.facts.real_person
    ids = [bound.id for bound in bounds]
    views, capacities = map(inputs.supply_health.get, ids), map(inputs.supply_capacity.get, ids)
    found = []
    for bound, seen, told, quoted in zip(bounds, views, capacities, map(inputs.quotes.get, ids), strict=True):
        view, capacity = seen or HEALTHY, told or bound.unseen
        state, _, _, allowed, success_rate, _, _, _ = view
        configured, used, current, rpm, rpm_used, tpm, tpm_used, adaptive, frozen_until, _ = capacity
        channel = doors.get(bound.channel) or assessor.channel_door(bound.channel)
        shut, slots, worst, worst_rank, _, _ = channel
        if configured and configured - used < slots:
            slots = configured - used
        if allowed is not None and allowed - current < slots:
            slots = allowed - current
        if adaptive is not None and adaptive - used < slots:
            slots = adaptive - used
        drop = bound.forbidden or unfit[bound.fit]
        if drop is None and real_person and bound.real_person is FORBIDDEN:
            drop = REFUSES_REAL_PERSONS
        if slots <= 0 or shut or watched or state in ILL or frozen_until or rpm_used >= rpm > 0 or tpm_used >= tpm > 0:
            drop = drop or assessor.passing_drop(bound, view, capacity, channel)
            slots = max(0, slots)
        rank = HEALTH_RANKS.get(state, UNHEALTHY)
        if worst_rank > rank:
            state, rank = worst, worst_rank
        amount, over, emergency, key = None, None, "", NO_KEY
        if quoted is None or quoted.amount is None:
            drop = drop or Drop("SEL-10", "unpriced", (quoted or NO_QUOTE).unpriced_reason)
        else:
            amount, cost = quoted.amount, quoted.compared or quoted.amount
            if amount > ceiling:
                over, emergency = limits.over(amount, cost)
            if drop is None and over is None:
                percent = success_percent(view, samples)
                if bound.charges_on_failure:
                    cost = expected_cost(cost, percent, True)
                key = ordered((rank << PERCENT_BITS) - percent, cost, -slots, bound.priority, bound.place)
        free = None if slots == UNLIMITED else slots
        restricted = real_person and bound.real_person is RESTRICTED
        values = (bound, shape, drop, over, emergency, amount, state, success_rate, free, restricted, key)
        found.append(_new(Candidate, values))
    return found


def key_of(inputs: Inputs, candidate: Candidate) -> Key:
    """What orders a candidate that has a quote."""
    if candidate.key or candidate.quote is None:
        return candidate.key
    bound, view = candidate.bound, inputs.supply_health.get(candidate.bound.id, HEALTHY)
    percent = success_percent(view, inputs.policy.min_samples)
    weight = inputs.quotes[bound.id].weight or candidate.quote
    cost = expected_cost(weight, percent, bound.charges_on_failure)
    health = (HEALTH_RANKS.get(candidate.health, UNHEALTHY) << PERCENT_BITS) - percent
    slots = UNLIMITED if candidate.free_slots is None else candidate.free_slots
    return KEYS[inputs.policy.order](health, cost, -slots, bound.priority, bound.place)


def passed_over_for(supply: str) -> Drop:
    """HUMAN-2: somebody decided that only that Supply may serve the Task; the others are not looked at."""
    return Drop(REROUTED, "rerouted", f"only supply {supply} may serve this task")


def as_asked(model: Model, given: Mapping[str, Any]) -> Shape:
    """The request as a Supply of full capability would be sent it."""
    said = normalised(model.kind, model.limits, given)
    return Shape(said, facts_of(model.kind, said))


def misfit(fit: Fit, facts: Facts, mode: str) -> Drop | None:
    """SEL-5: the needs that are not met, and the billing mode (COST-1)."""
    if fit.kind is not facts.kind:
        return Drop("SEL-5", "capability", f"needs {facts.kind}, admits {fit.kind}")
    found = misfits(fit.capabilities, facts)
    if found:
        return Drop("SEL-5", "capability", "; ".join(misfit.figures for misfit in found))
    if fit.modes and mode not in fit.modes:
        return Drop("SEL-5", "billing_mode", f"needs {mode}, offers {', '.join(fit.modes)}")
    return None


def beyond_window(fit: Fit, shape: Shape) -> Drop | None:
    """SEL-5: more tokens at once than a whole minute admits, which no waiting cures; another Supply may take them."""
    kind, (most, whose) = fit.kind, fit.window
    if kind not in IN_TOKENS:
        return None
    tokens = tokens_at_once(kind, as_digest(kind, shape.input), fit.capabilities)
    if tokens <= most:
        return None
    return Drop("SEL-5", WINDOW, f"needs {tokens} tokens at once, {whose} admits {most} a minute")


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
