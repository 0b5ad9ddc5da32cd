"""The objects of a catalogue file, read one by one: a mapping at its path becomes a typed value of revision 0.

Every reader reports what is wrong and goes on; names of other objects are compared later, in `catalog_links`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from services.routing.domain.calls.sync_settings import watchdog_incoherence
from services.routing.domain.catalog import (
    Admin,
    Binding,
    Channel,
    DegradationRule,
    Kind,
    Limits,
    Model,
    Order,
    Policy,
    Price,
    RealPerson,
    ReconcileBy,
    Supply,
    Tenant,
    Tier,
    Timeouts,
)
from services.routing.domain.input_shape import FIELDS
from services.routing.domain.price_shape import BillingMode, check_price
from services.routing.domain.regression_shape import check_set
from services.routing.domain.spec_reader import SpecReader
from services.routing.domain.spend_quota import read_spend

MAX_PRIORITY = 1_000_000
"""CAT-4."""
MAX_ATTEMPTS = 10
DAY_S = 86_400.0
SECRET_SCHEMES = ("env:", "file:")

SECONDS_OF_HEALTH = (
    "cooldown_s",
    "account_cooldown_s",
    "capacity_cooldown_s",
    "escalation_window_s",
    "window_s",
)
COUNTS_OF_HEALTH = (
    "connect_failures",
    "consecutive_failures",
    "capacity_failures",
    "escalation_supplies",
    "failure_rate_min",
    "degraded_failures",
    "degraded_successes",
)
RATES_OF_HEALTH = ("failure_rate", "degraded_rate")

TEXT_LISTS = {
    Kind.VIDEO: ("resolutions", "ratios", "features"),
    Kind.IMAGE: ("sizes", "features"),
    Kind.CHAT: ("features", "parameters"),
    Kind.EMBEDDING: (),
    Kind.OCR: ("tasks",),
    Kind.SPEECH: ("voices", "formats", "features"),
}
COUNTS = {
    Kind.VIDEO: (),
    Kind.IMAGE: ("n_max",),
    Kind.CHAT: ("context_tokens", "max_output_tokens"),
    Kind.EMBEDDING: ("max_batch",),
    Kind.OCR: ("max_bytes",),
    Kind.SPEECH: ("max_characters",),
}
INPUT_FIELDS = frozenset(name for fields in FIELDS.values() for name in fields)
WITH_INPUTS = frozenset({Kind.VIDEO, Kind.IMAGE})


class WhenFull(StrEnum):
    """TIER-1a; the empty word leaves it to the kind."""

    BY_KIND = ""
    WAIT = "wait"
    SPILL = "spill"


def read_channel(reader: SpecReader) -> Channel:
    """An entry of `channels`."""
    channel = Channel(
        id=reader.identifier(),
        revision=0,
        adapter=reader.text("adapter"),
        base_url=reader.text("base_url", ""),
        secret=reader.text("secret", ""),
        limits=_limits(reader),
        timeouts=_timeouts(reader),
        poll_interval_s=reader.number("poll_interval_s", 2.0, high=3600),
        health=_health(reader),
        admin=reader.choice("admin", Admin, Admin.ENABLED),
        reconcile_by=reader.choice("reconcile_by", ReconcileBy, ReconcileBy.BY_ADAPTER),
    )
    if not channel.base_url.startswith(("http://", "https://")) and not _is_local(channel):
        reader.fault("base_url", "must be an http or https address, with its version prefix")
    elif "@" in channel.base_url.partition("://")[2].partition("/")[0]:
        # Not shown either, and an address is: in differences, logs and faults.
        reader.fault("base_url", "must hold no user or password; name the secret with env:NAME or file:PATH")
    if channel.secret and not any(
        channel.secret.startswith(scheme) and channel.secret != scheme for scheme in SECRET_SCHEMES
    ):
        # The value is not shown: it may be the secret itself.
        reader.fault("secret", "must name where the secret is: env:NAME or file:PATH")
    return channel


def _is_local(channel: Channel) -> bool:
    """Adapters that work in this process have no address."""
    return channel.adapter.startswith("local-") and not channel.base_url


def _limits(reader: SpecReader) -> Limits:
    nested = reader.nested("limits")
    if nested is None:
        return Limits()
    limits = Limits(nested.whole("concurrency", 0), nested.whole("rpm", 0), nested.whole("tpm", 0))
    nested.close()
    return limits


def _timeouts(reader: SpecReader) -> Timeouts:
    nested, usual = reader.nested("timeouts"), Timeouts()
    if nested is None:
        return usual
    timeouts = Timeouts(
        connect_s=nested.number("connect_s", usual.connect_s, high=DAY_S),
        submit_s=nested.number("submit_s", usual.submit_s, high=DAY_S),
        poll_s=nested.number("poll_s", usual.poll_s, high=DAY_S),
        ttft_s=nested.number("ttft_s", usual.ttft_s, high=DAY_S, above=False),
        inter_token_s=nested.number("inter_token_s", usual.inter_token_s, high=DAY_S, above=False),
    )
    if lacking := watchdog_incoherence(timeouts):
        nested.fault("ttft_s" if timeouts.ttft_s <= 0 else "inter_token_s", lacking)
    nested.close()
    return timeouts


def _health(reader: SpecReader) -> dict[str, float]:
    """Only what is said: the defaults are health's own (HLT-8)."""
    nested = reader.nested("health")
    if nested is None:
        return {}
    values: dict[str, float] = {}
    for name in SECONDS_OF_HEALTH:
        values[name] = nested.number(name, 0.0, high=DAY_S)
    for name in COUNTS_OF_HEALTH:
        values[name] = nested.whole(name, 0, low=1)
    for name in RATES_OF_HEALTH:
        values[name] = nested.number(name, 0.0, high=1.0)
    nested.close()
    return {name: value for name, value in values.items() if nested.has(name)}


def read_supply(reader: SpecReader) -> Supply:
    """An entry of `supplies`."""
    kind = reader.choice("kind", Kind)
    supply = Supply(
        id=reader.identifier(),
        revision=0,
        channel=reader.text("channel"),
        upstream_model=reader.text("upstream_model"),
        kind=kind,
        capability_version=reader.whole("capability_version", 1, low=1),
        capabilities=read_capabilities(reader, "capabilities", kind),
        real_person=reader.choice("real_person", RealPerson, RealPerson.ALLOWED),
        limits=_limits(reader),
        prices=reader.texts("prices"),
        charges_on_failure=reader.flag("charges_on_failure", False),
        evidence=reader.word("evidence", ("", "waived"), ""),
        evidence_reason=reader.text("evidence_reason", ""),
        admin=reader.choice("admin", Admin, Admin.ENABLED),
    )
    if supply.evidence and not supply.evidence_reason:
        reader.fault("evidence_reason", "is required beside evidence: waived (CAT-7)")
    check_set(reader, kind)
    return supply


def read_capabilities(reader: SpecReader, name: str, kind: Kind) -> Mapping[str, Any]:
    """A Supply's `capabilities` or a model's `limits`: the same fields, by kind."""
    nested = reader.nested(name)
    if nested is None:
        return {}
    for field in TEXT_LISTS[kind]:
        nested.texts(field)
    for field in COUNTS[kind]:
        nested.whole(field, 1, low=1)
    if kind in WITH_INPUTS:
        inputs = nested.nested("inputs")
        for material in inputs.value if inputs else ():
            inputs.whole(material, 0, high=1000) if inputs else None
    if kind is Kind.VIDEO:
        _check_duration(nested)
    if kind is Kind.EMBEDDING:
        _check_dimensions(nested)
    nested.close()
    return dict(nested.value)


def _check_duration(reader: SpecReader) -> None:
    bounds = reader.nested("duration_s")
    if bounds is None:
        return
    low, high = bounds.number("min", 0.0, high=DAY_S), bounds.number("max", DAY_S, high=DAY_S)
    if high < low:
        bounds.fault("max", f"must not be below min ({low:g})")
    lengths = bounds.anything("lengths")
    if lengths is not None and not _are_lengths(lengths):
        bounds.fault("lengths", "must be a list of whole numbers of seconds above 0, the shortest first")
    bounds.close()


def _are_lengths(value: Any) -> bool:
    whole = isinstance(value, list) and all(type(length) is int and length > 0 for length in value)
    return whole and bool(value) and value == sorted(set(value))


def _check_dimensions(reader: SpecReader) -> None:
    value = reader.anything("dimensions")
    sizes = value if isinstance(value, list) else [] if value is None else [value]
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
        reader.fault("dimensions", "must be a whole number above 0, or a list of them")


def read_price(reader: SpecReader) -> Price:
    """An entry of `prices`; `spec` is the declaration, which cost_quote interprets."""
    mode = reader.choice("billing_mode", BillingMode)
    price = Price(
        id=reader.identifier(),
        revision=0,
        version=reader.whole("version", 1, low=1),
        currency=read_currency(reader, "currency"),
        billing_mode=str(mode),
        spec=dict(reader.value),
    )
    check_price(reader, mode)
    return price


def read_currency(reader: SpecReader, name: str, default: str | None = None) -> str:
    """Three capital letters."""
    currency = reader.text(name, default)
    if currency and (len(currency) != 3 or not currency.isascii() or not currency.isalpha() or not currency.isupper()):
        reader.fault(name, f"must be three capital letters, not {currency!r}")
    return currency


def read_policy(reader: SpecReader) -> Policy:
    """An entry of `policies`. Whether its limits make sense together is the publish gate's question."""
    usual = Policy("", 0)
    return Policy(
        id=reader.identifier(),
        revision=0,
        order=reader.choice("order", Order, usual.order),
        min_samples=reader.whole("min_samples", usual.min_samples, low=1),
        stable_cost_multiplier_limit=reader.amount("stable_cost_multiplier_limit", usual.stable_cost_multiplier_limit),
        fallback_cost_multiplier_limit=reader.amount(
            "fallback_cost_multiplier_limit", usual.fallback_cost_multiplier_limit
        ),
        absolute_cost_limit=reader.amount("absolute_cost_limit", usual.absolute_cost_limit),
        emergency_availability=reader.flag("emergency_availability", usual.emergency_availability),
        emergency_cost_limit=reader.amount("emergency_cost_limit", usual.emergency_cost_limit),
        degradation=reader.word("degradation", ("best_effort", "strict"), usual.degradation),
        max_attempts=reader.whole("max_attempts", usual.max_attempts, low=1, high=MAX_ATTEMPTS),
        new_attempt_window_s=reader.number("new_attempt_window_s", usual.new_attempt_window_s),
        uncertain_deadline_s=reader.number("uncertain_deadline_s", usual.uncertain_deadline_s),
        when_full=str(reader.choice("when_full", WhenFull, WhenFull.BY_KIND)),
        sync=_sync(reader),
    )


def _sync(reader: SpecReader) -> Mapping[str, Any]:
    nested = reader.nested("sync")
    if nested is None:
        return {}
    for name in ("total_timeout_s", "stall_window_s", "backoff_base_s", "backoff_max_s"):
        nested.number(name, 1.0, high=DAY_S)
    nested.whole("max_attempts", 1, low=1, high=MAX_ATTEMPTS)
    nested.word("quota_full", ("fail_fast", "wait"), "fail_fast")
    nested.flag("retry_unknown", False)
    nested.word("selector", ("health_aware", "round_robin", "least_inflight"), "health_aware")
    nested.close()
    return dict(nested.value)


def read_rule(reader: SpecReader) -> DegradationRule:
    """An entry of `degradation_rules` (TIER-3): three verbs, no scripts."""
    rule = DegradationRule(
        id=reader.identifier(),
        revision=0,
        from_profile=reader.text("from_profile"),
        to_profile=reader.text("to_profile"),
        drop_inputs=reader.texts("drop_inputs"),
        set=_mapping(reader, "set"),
        clamp=_clamp(reader),
        verified=reader.flag("verified", False),
        published=reader.flag("published", False),
        discloses=reader.text("discloses", ""),
    )
    if not (rule.drop_inputs or rule.set or rule.clamp):
        reader.fault("drop_inputs", "a rule needs at least one of drop_inputs, set and clamp")
    named = [(f"drop_inputs[{index}]", name) for index, name in enumerate(rule.drop_inputs)]
    named += [(f"set.{name}", name) for name in rule.set] + [(f"clamp.{name}", name) for name in rule.clamp]
    for place, name in named:
        if name not in INPUT_FIELDS:
            reader.fault(place, f"no kind of request has a field {name!r}")
    if rule.from_profile and rule.from_profile == rule.to_profile:
        reader.fault("to_profile", "must differ from from_profile")
    return rule


def _mapping(reader: SpecReader, name: str) -> Mapping[str, Any]:
    nested = reader.nested(name)
    return dict(nested.value) if nested else {}


def _clamp(reader: SpecReader) -> Mapping[str, Any]:
    nested = reader.nested("clamp")
    if nested is None:
        return {}
    for name in nested.value:
        bounds = nested.nested(name)
        if bounds is not None:
            bounds.number("min", 0.0, above=False)
            bounds.number("max", 0.0, above=False)
            if not bounds.value:
                nested.fault(name, "must have min or max")
            bounds.close()
    return dict(nested.value)


def read_model(reader: SpecReader) -> Model:
    """An entry of `models`. `enabled` and `published` of the result are what the file asks for, not what is granted."""
    kind = reader.choice("kind", Kind)
    model = Model(
        id=reader.identifier(),
        revision=0,
        kind=kind,
        policy=reader.text("policy"),
        profile=reader.text("profile", ""),
        limits=read_capabilities(reader, "limits", kind),
        enabled=reader.flag("enabled", True),
        published=reader.flag("published", False),
        bindings=tuple(_binding(item) for item in reader.items("bindings")),
        cache=_cache(reader),
    )
    return model


def _binding(reader: SpecReader) -> Binding:
    binding = Binding(
        supply=reader.text("supply"),
        tier=reader.choice("tier", Tier),
        priority=reader.whole("priority", 0, high=MAX_PRIORITY),
        rule=reader.text("rule", ""),
    )
    if binding.tier is Tier.DEGRADED and not binding.rule:
        reader.fault("rule", "is required for a degraded binding (TIER-1)")
    if binding.tier is not Tier.DEGRADED and binding.rule:
        reader.fault("rule", f"belongs to degraded bindings, not to {binding.tier} ones")
    reader.close()
    return binding


def _cache(reader: SpecReader) -> Mapping[str, Any]:
    nested = reader.nested("cache")
    if nested is None:
        return {}
    nested.number("ttl_s", 0.0)
    nested.close()
    return dict(nested.value)


def read_tenant(reader: SpecReader) -> Tenant:
    """An entry of `tenants`. Without `models` a tenant may use every published one."""
    models = reader.texts("models") if reader.has("models") else ("*",)
    nested = reader.nested("quotas")
    quotas, spend = {}, None
    if nested is not None:
        for name in ("queued_runs", "running_runs", "rpm"):
            count = nested.whole(name, 0)
            if nested.has(name):
                quotas[name] = count
        spend = read_spend(nested.nested("spend"))
        nested.close()
    return Tenant(id=reader.identifier(), revision=0, models=models, quotas=quotas, spend=spend)
