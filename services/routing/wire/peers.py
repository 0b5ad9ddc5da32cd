"""What the peers say, and what they are told."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from libs.rpc.values import (
    money_from_proto,
    seconds_to_proto,
    struct_from,
    struct_to_dict,
    time_from_proto,
    time_to_proto,
)
from pointsman.capacity.v1 import capacity_pb2, capacity_service_pb2
from pointsman.common.v1 import subject_pb2
from pointsman.cost_quote.v1 import quote_pb2, quote_service_pb2
from pointsman.health.v1 import health_pb2, health_service_pb2
from pointsman.provider_adapter.v1 import provider_pb2, provider_service_pb2
from services.routing.domain.alternative import PriceList
from services.routing.domain.calls.call import Try
from services.routing.domain.catalog import Admin, Catalog, Channel, Limits, Supply
from services.routing.domain.decision import CapacityView, HealthView, QuoteView
from services.routing.domain.feedback import Feedback, Pace
from services.routing.domain.refusals import HealthCause
from services.routing.domain.task import Attempt, Failure
from services.routing.ports import Delivered, Polled, Priced, Reconciled, Refused, Reserved, Submitted
from services.routing.wire import failures
from services.routing.wire.artifacts import artifact_from_proto

CHANNEL = subject_pb2.SUBJECT_KIND_CHANNEL
SUPPLY = subject_pb2.SUBJECT_KIND_SUPPLY
GLOBAL = subject_pb2.SUBJECT_KIND_GLOBAL
Views = Mapping[str, HealthView]


def _word(enum: Any, number: int, prefix: str, other: str) -> str:
    """An enum value as a word of the domain; `other` where none was set or a later release has set it."""
    return enum.Name(number).removeprefix(prefix).lower() if number and number in enum.values() else other


# --- Health -----------------------------------------------------------------------------------------------------------

_TIMES = ("cooldown", "account_cooldown", "capacity_cooldown", "escalation_window", "window")
_FIGURES = (
    "connect_failures", "consecutive_failures", "capacity_failures", "escalation_supplies", "failure_rate",
    "failure_rate_min", "degraded_rate", "degraded_failures", "degraded_successes",
)  # fmt: skip
_RATES = frozenset({"failure_rate", "degraded_rate"})


def health_views(
    message: health_service_pb2.GetSnapshotResponse,
) -> tuple[dict[str, HealthView], dict[str, HealthView]]:
    """(by Channel id, by Supply id). A state from a later release reads as degraded; its limit holds as told."""
    views: dict[int, dict[str, HealthView]] = {CHANNEL: {}, SUPPLY: {}}
    for item in message.subjects:
        views.setdefault(item.subject.kind, {})[item.subject.id] = _health_view(item)
    return views[CHANNEL], views[SUPPLY]


def _health_view(item: health_pb2.SubjectHealth) -> HealthView:
    return HealthView(
        state=_word(health_pb2.HealthState, item.state, "HEALTH_STATE_", "degraded"),
        epoch=item.epoch,
        revision=item.revision,
        limit=item.effective_concurrency if item.HasField("effective_concurrency") else None,
        success_rate=item.success_rate if item.HasField("success_rate") else None,
        success_rate_low=item.success_rate_low if item.HasField("success_rate_low") else None,
        samples=item.samples,
        cooldown_until=time_from_proto(item.cooldown_until_time),
    )


def outcome_to_proto(
    attempt: Attempt | Try, failure: Failure | None, dispatched_at: datetime, observed_at: datetime
) -> health_service_pb2.ReportOutcomeRequest:
    """The one outcome of an Attempt."""
    return health_service_pb2.ReportOutcomeRequest(
        outcome=health_pb2.Outcome(
            attempt_id=attempt.id,
            channel_id=attempt.channel,
            supply_id=attempt.supply,
            channel_epoch=attempt.channel_epoch,
            supply_epoch=attempt.supply_epoch,
            failure=failures.to_proto(failure),
            observe_time=time_to_proto(observed_at),
            dispatch_time=time_to_proto(dispatched_at),
        )
    )


def targets_to_proto(catalog: Catalog) -> health_service_pb2.ApplyTargetsRequest:
    """Every Channel and Supply with the thresholds of its Channel."""
    targets = [_target(CHANNEL, item.id, "", item.limits, item.admin, item) for item in catalog.channels.values()]
    for supply in catalog.supplies.values():
        channel = catalog.channels[supply.channel]
        targets.append(_target(SUPPLY, supply.id, supply.channel, supply.limits, supply.admin, channel))
    return health_service_pb2.ApplyTargetsRequest(catalog_revision=catalog.revision, targets=targets)


def _target(
    kind: subject_pb2.SubjectKind.ValueType, name: str, channel_id: str, limits: Limits, admin: Admin, of: Channel
) -> health_pb2.Target:
    return health_pb2.Target(
        subject=subject_pb2.Subject(kind=kind, id=name),
        channel_id=channel_id,
        configured_concurrency=limits.concurrency,
        disabled=admin is Admin.DISABLED,
        thresholds=_thresholds(of.health),
    )


def _thresholds(declared: Mapping[str, float]) -> health_pb2.Thresholds:
    message = health_pb2.Thresholds()
    for name in _TIMES:
        if f"{name}_s" in declared:
            getattr(message, name).CopyFrom(seconds_to_proto(declared[f"{name}_s"]))
    for name in _FIGURES:
        if name in declared:
            setattr(message, name, float(declared[name]) if name in _RATES else int(declared[name]))
    return message


def subject_to_proto(sort: str, name: str) -> subject_pb2.Subject:
    """A `channel` or a `supply`."""
    return subject_pb2.Subject(kind=CHANNEL if sort == "channel" else SUPPLY, id=name)


def cause_from_proto(message: health_service_pb2.ExplainStateResponse) -> HealthCause:
    """The event that brought a subject where it was."""
    event, at = message.cause, time_from_proto(message.cause.observe_time)
    assert at is not None  # every event has a time
    until = time_from_proto(message.health.cooldown_until_time)
    return HealthCause(event.sequence, event.kind, event.reason, event.attempt_id, at, until)


# --- Capacity ---------------------------------------------------------------------------------------------------------


def reserve_to_proto(
    lease_id: str,
    holder: str,
    supply: Supply,
    channel_health: HealthView,
    supply_health: HealthView,
    ttl_s: float,
    tokens: int = 0,
) -> capacity_service_pb2.ReserveRequest:
    """One slot on the Supply and its Channel."""
    return capacity_service_pb2.ReserveRequest(
        lease_id=lease_id,
        holder=holder,
        kind=str(supply.kind),
        channel_id=supply.channel,
        supply_id=supply.id,
        channel_health=_health_limit(CHANNEL, supply.channel, channel_health),
        supply_health=_health_limit(SUPPLY, supply.id, supply_health),
        tokens=tokens,
        ttl=seconds_to_proto(ttl_s),
    )


_PACES = {
    Pace.UNSAID: capacity_pb2.PACE_UNSPECIFIED,
    Pace.SUCCEEDED: capacity_pb2.PACE_SUCCEEDED,
    Pace.CONGESTED: capacity_pb2.PACE_CONGESTED,
}


def release_to_proto(lease_id: str, holder: str, feedback: Feedback) -> capacity_service_pb2.ReleaseRequest:
    """A slot given back, with what its work taught."""
    return capacity_service_pb2.ReleaseRequest(
        lease_id=lease_id,
        holder=holder,
        used_tokens=feedback.used_tokens,
        pace=_PACES[feedback.pace],
        retry_after=seconds_to_proto(feedback.retry_after_ms / 1000) if feedback.retry_after_ms else None,
    )


def _health_limit(kind: subject_pb2.SubjectKind.ValueType, name: str, view: HealthView) -> capacity_pb2.HealthLimit:
    return capacity_pb2.HealthLimit(
        subject=subject_pb2.Subject(kind=kind, id=name), epoch=view.epoch, revision=view.revision, limit=view.limit
    )


def health_limits_to_proto(channels: Views, supplies: Views) -> capacity_service_pb2.ApplyLimitsRequest:
    """What health allows; the limits themselves are not told (catalogue revision 0)."""
    told = [_health_limit(CHANNEL, name, view) for name, view in channels.items()]
    told += [_health_limit(SUPPLY, name, view) for name, view in supplies.items()]
    return capacity_service_pb2.ApplyLimitsRequest(health=told)


def limits_to_proto(catalog: Catalog) -> capacity_service_pb2.ApplyLimitsRequest:
    """Every level: kinds of work without gates of their own, Channels, Supplies."""
    kinds = sorted({str(supply.kind) for supply in catalog.supplies.values()})
    limits = [_limits(GLOBAL, kind, "", Limits()) for kind in kinds]
    limits += [_limits(CHANNEL, item.id, "", item.limits) for item in catalog.channels.values()]
    limits += [_limits(SUPPLY, item.id, item.channel, item.limits) for item in catalog.supplies.values()]
    return capacity_service_pb2.ApplyLimitsRequest(catalog_revision=catalog.revision, limits=limits)


def _limits(
    kind: subject_pb2.SubjectKind.ValueType, name: str, channel_id: str, limits: Limits
) -> capacity_pb2.SubjectLimits:
    return capacity_pb2.SubjectLimits(
        subject=subject_pb2.Subject(kind=kind, id=name),
        channel_id=channel_id,
        concurrency=limits.concurrency,
        requests_per_minute=limits.rpm,
        tokens_per_minute=limits.tpm,
    )


def reserved_from_proto(message: capacity_service_pb2.ReserveResponse) -> Reserved | Refused:
    """Either half of the answer."""
    if message.HasField("lease"):
        expires = time_from_proto(message.lease.expire_time)
        assert expires is not None  # every lease has an end
        return Reserved(message.lease.id, expires)
    refusal = message.refusal
    sort = subject_pb2.SubjectKind.Name(refusal.subject.kind).removeprefix("SUBJECT_KIND_").lower()
    return Refused(
        level=f"{sort} {refusal.subject.id}",
        gate=_word(capacity_pb2.Gate, refusal.gate, "GATE_", "another gate"),
        limit=refusal.limit,
        used=refusal.used,
        retry_at=time_from_proto(refusal.retry_time),
    )


def capacity_views(
    message: capacity_service_pb2.GetCapacityResponse,
) -> tuple[dict[str, CapacityView], dict[str, CapacityView], dict[str, CapacityView]]:
    """(by kind, by Channel id, by Supply id)."""
    views: dict[int, dict[str, CapacityView]] = {GLOBAL: {}, CHANNEL: {}, SUPPLY: {}}
    for item in message.subjects:
        views.setdefault(item.subject.kind, {})[item.subject.id] = CapacityView(
            configured=item.configured,
            in_use=item.in_use,
            in_use_current_epoch=item.in_use_current_epoch,
            rpm=item.requests_per_minute,
            rpm_used=item.requests_used,
            tpm=item.tokens_per_minute,
            tpm_used=item.tokens_used,
            adaptive=item.adaptive if item.HasField("adaptive") else None,
            frozen_until=time_from_proto(item.frozen_until_time),
            room_at=time_from_proto(item.room_time),
        )
    return views[GLOBAL], views[CHANNEL], views[SUPPLY]


def held_leases(message: capacity_service_pb2.GetCapacityResponse, holder: str) -> list[tuple[str, datetime]]:
    """(id, when it was taken) of that holder's leases."""
    mine = ((item.id, time_from_proto(item.reserve_time)) for item in message.leases if item.holder == holder)
    return [(lease_id, at) for lease_id, at in mine if at is not None]


# --- Prices -----------------------------------------------------------------------------------------------------------


Quotes = dict[str, QuoteView]
_KINDS = {quote_pb2.QUOTE_KIND_EXACT: "exact", quote_pb2.QUOTE_KIND_CEILING: "ceiling"}


def quote_request(
    kind: str,
    mode: str,
    candidates: Sequence[Priced],
    prices: PriceList | None = None,
    at: datetime | None = None,
) -> quote_service_pb2.QuoteCandidatesRequest:
    """Every candidate with the input that it would be sent, said once for all that would be sent the same one (it may
    be long); `prices` in place of those in force."""
    uses = Counter(id(item.input) for item in candidates)
    common = max((item.input for item in candidates), key=lambda given: uses[id(given)], default={})
    return quote_service_pb2.QuoteCandidatesRequest(
        kind=kind,
        billing_mode=quote_pb2.BillingMode.Value(f"BILLING_MODE_{mode.upper()}"),
        input=struct_from(common),
        candidates=[
            quote_pb2.Candidate(
                supply_id=item.supply.id,
                price_rule_ids=item.supply.prices,
                input=None if item.input is common else struct_from(item.input),
            )
            for item in candidates
        ],
        price_list=None if prices is None else quote_service_pb2.PriceList(**_told_prices(prices)),
        submit_time=time_to_proto(at),
    )


def quotes_from_proto(message: quote_service_pb2.QuoteCandidatesResponse) -> dict[str, QuoteView]:
    """By Supply id."""
    return {item.supply_id: _quote(item) for item in message.quotes}


def each_from_proto(message: quote_service_pb2.QuoteCandidatesResponse, counts: Sequence[int]) -> list[Quotes]:
    """The same for several requests that were asked about at once, with so many candidates each."""
    quotes = iter(message.quotes)
    return [{item.supply_id: _quote(item) for item in islice(quotes, count)} for count in counts]


def _quote(item: quote_pb2.CandidateQuote) -> QuoteView:
    if not item.HasField("quote"):
        return QuoteView(unpriced_reason=item.unpriced_reason or "no quote")
    quote = item.quote
    money = money_from_proto(quote.amount)
    return QuoteView(
        amount=money.amount if money else None,
        unpriced_reason="" if money else "the quote names no money",
        rule_id=quote.rule_id,
        rule_version=quote.rule_version,
        exchange_rate=quote.exchange_rate,
        kind=_KINDS.get(quote.kind) or quote_pb2.QuoteKind.Name(quote.kind).removeprefix("QUOTE_KIND_").lower(),
        explanation=quote.explanation,
    )


def prices_to_proto(catalog: Catalog) -> quote_service_pb2.ApplyPriceRulesRequest:
    """Every rule as declared, and the rate table."""
    told = _told_prices(PriceList(catalog.currency, catalog.fx, catalog.prices))
    return quote_service_pb2.ApplyPriceRulesRequest(catalog_revision=catalog.revision, **told)


def _told_prices(prices: PriceList) -> dict[str, Any]:
    return {
        "currency": prices.currency,
        "exchange_rates": {currency: format(rate, "f") for currency, rate in prices.fx.items()},
        "price_rules": [
            quote_pb2.PriceRule(id=item.id, version=item.version, spec=struct_from(item.spec))
            for item in prices.rules.values()
        ],
    }


# --- Providers --------------------------------------------------------------------------------------------------------


def job(supply: Supply, attempt: Attempt) -> provider_pb2.ProviderJob:
    """The request as it was decided to be sent."""
    return provider_pb2.ProviderJob(
        attempt_id=attempt.id,
        client_token=attempt.client_token,
        kind=str(supply.kind),
        upstream_model=supply.upstream_model,
        input=struct_from(attempt.input),
    )


def submitted_from_proto(message: provider_service_pb2.SubmitResponse) -> Submitted:
    """The job's id; what it gave, where it finished within the call."""
    delivered = _delivered(message.result) if message.HasField("result") else None
    return Submitted(message.provider_task_id, delivered)


def polled_from_proto(message: provider_service_pb2.PollResponse) -> Polled:
    """Where it stands. A state from a later release reads as running: the next poll asks again."""
    return Polled(
        state=_word(provider_pb2.JobState, message.state, "JOB_STATE_", "running"),
        delivered=_delivered(message.result) if message.HasField("result") else None,
        failure=failures.from_proto(message.failure) if message.HasField("failure") else None,
    )


def reconciled_from_proto(message: provider_service_pb2.ReconcileResponse) -> Reconciled:
    """The verdict; one that this release does not know is `unknown`."""
    verdict = _word(provider_pb2.ReconcileVerdict, message.verdict, "RECONCILE_VERDICT_", "unknown")
    delivered = _delivered(message.result) if message.HasField("result") else None
    return Reconciled(verdict, message.provider_task_id, message.evidence, delivered)


def _delivered(message: provider_pb2.ProviderResult) -> Delivered:
    return Delivered(
        artifacts=tuple(map(artifact_from_proto, message.artifacts)),
        output=struct_to_dict(message.output),
        usage=struct_to_dict(message.usage),
        reported_cost=money_from_proto(message.reported_cost),
    )
