"""The doors to routing's peers: what is said over the wire, and what an answer that proves nothing becomes."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from google.type import money_pb2

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from pointsman.capacity.v1 import capacity_pb2, capacity_service_pb2
from pointsman.capacity.v1.capacity_service_pb2_grpc import (
    CapacityServiceServicer,
    add_CapacityServiceServicer_to_server,
)
from pointsman.common.v1 import subject_pb2
from pointsman.cost_quote.v1 import quote_pb2
from pointsman.cost_quote.v1 import quote_service_pb2 as quotes
from pointsman.cost_quote.v1.quote_service_pb2_grpc import QuoteServiceServicer, add_QuoteServiceServicer_to_server
from pointsman.health.v1 import health_pb2, health_service_pb2
from pointsman.provider_adapter.v1 import provider_pb2
from pointsman.provider_adapter.v1 import provider_service_pb2 as provider
from pointsman.provider_adapter.v1.provider_service_pb2_grpc import (
    ProviderServiceServicer,
    add_ProviderServiceServicer_to_server,
)
from services.routing.domain.decision import CapacityView, HealthView
from services.routing.domain.feedback import SILENT, Feedback, Pace
from services.routing.domain.task import Attempt, AttemptState
from services.routing.domain.usage import Usage
from services.routing.peers.capacity import RemoteCapacity
from services.routing.peers.provider import RemoteProvider
from services.routing.peers.quotes import RemoteQuotes
from services.routing.ports import Priced, Refused
from services.routing.ports.prices import UsageItem, UsagePrice
from services.routing.wire import peers as wire
from tests.contract.routing.tasks_stores import attempt, queued
from tests.support.worlds import START, SteeredClock
from tests.unit.routing.dispatch_offers import catalog, supply

CLOCK = SteeredClock()


class Peer(ProviderServiceServicer, CapacityServiceServicer, QuoteServiceServicer):
    """Answers as told, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answer: Any = None
        self.asked: list[Any] = []

    async def _answer(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    Submit = Poll = Reconcile = Reserve = RenewLeases = Release = QuoteCandidates = PriceUsage = _answer


@pytest.fixture
async def peer() -> Peer:
    """One for all services."""
    return Peer()


@pytest.fixture
async def channels(peer: Peer) -> AsyncIterator[Channels]:
    """Doors to it."""
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    server.add(lambda target: add_ProviderServiceServicer_to_server(peer, target))
    server.add(lambda target: add_CapacityServiceServicer_to_server(peer, target))
    server.add(lambda target: add_QuoteServiceServicer_to_server(peer, target))
    await server.start()
    async with Channels(registry=registry, caller="routing") as opened:
        yield opened
    await server.close()


CLIP = supply("a/clip")
CHANNEL = catalog(CLIP).channels["a"]


SUBJECT = subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_SUPPLY, id="a/clip")


def clock() -> SteeredClock:
    """Time that stands still unless moved."""
    return SteeredClock()


def sent() -> Attempt:
    """An Attempt on its way."""
    return attempt(queued("t1"), state=AttemptState.SUBMITTING)


@pytest.mark.parametrize(
    "answer",
    [
        ZeroDivisionError("a bug"),
        Fault.of("deadline_exceeded", "late"),
        Fault.of("peer_unavailable", "gone"),
        Fault.of("cancelled", "stopping"),
        Fault.of("submission_unknown", "reset"),
        provider.SubmitResponse(),
    ],
)
async def test_what_proves_nothing_of_a_submission_is_unknown(peer: Peer, channels: Channels, answer: Any):
    """ERR-1, ATT-6: a bug, a timeout, a lost or stopped peer, an answer without a job may hide one that was taken."""
    peer.answer = answer
    with pytest.raises(Fault) as caught:
        await RemoteProvider(channels.to("provider_adapter"), 5, 5, CLOCK).submit(CHANNEL, CLIP, sent())
    assert (caught.value.code, caught.value.category, caught.value.scope) == (
        "submission_unknown",
        "unknown",
        "attempt",
    )


async def test_a_context_that_is_not_there_proves_nothing_either():
    """ERR-1, ATT-6: an unreachable provider_adapter is told apart from a provider's refusal."""
    async with Channels(registry=LoopbackRegistry(), caller="routing") as nobody:
        with pytest.raises(Fault) as caught:
            await RemoteProvider(nobody.to("provider_adapter"), 5, 5, CLOCK).submit(CHANNEL, CLIP, sent())
    assert caught.value.code == "submission_unknown"


@pytest.mark.parametrize(
    "code", ["key_invalid", "content_rejected", "rate_limited", "source_not_configured", "overloaded"]
)
async def test_what_the_adapter_has_named_is_believed(peer: Peer, channels: Channels, code: str):
    """ERR-2: a named verdict arrives with category, scope and Retry-After as it was raised."""
    peer.answer = Fault.of(code, "said so", retry_after_ms=1500)
    with pytest.raises(Fault) as caught:
        await RemoteProvider(channels.to("provider_adapter"), 5, 5, CLOCK).submit(CHANNEL, CLIP, sent())
    assert caught.value.replaced(metadata={}) == peer.answer


async def test_a_job_is_sent_as_it_was_decided(peer: Peer, channels: Channels):
    """TIER-5: the transformed input, the Attempt's token, the Channel's address and time limits; never a secret."""
    peer.answer = provider.SubmitResponse(provider_task_id="job-1")
    remote = RemoteProvider(channels.to("provider_adapter"), 5, 5, CLOCK)
    assert (await remote.submit(CHANNEL, CLIP, sent())).provider_task_id == "job-1"
    asked = peer.asked[0]
    assert dict(asked.job.input) == {"prompt": "a boat", "ratio": 1.5}
    assert (asked.job.client_token, asked.job.upstream_model, asked.job.kind) == ("t1-a1", "clip-1", "video")
    assert (asked.channel.secret_ref, asked.channel.timeouts.submit.seconds) == ("env:KEY", 30)


async def test_records_are_asked_about_a_span_of_time(peer: Peer, channels: Channels):
    """ATT-6: where it is not known whether and when: from when, until when, and that nothing is to be sent."""
    peer.answer = provider.ReconcileResponse(verdict=provider_pb2.RECONCILE_VERDICT_NOT_ACCEPTED)
    remote = RemoteProvider(channels.to("provider_adapter"), 5, 5, CLOCK)
    assert (await remote.reconcile(CHANNEL, CLIP, sent(), 41.0)).verdict == "not_accepted"
    assert (await remote.look_up(CHANNEL, CLIP, sent(), START, 0.0)).verdict == "not_accepted"
    known, unknown = peer.asked
    assert (known.records_only, known.HasField("latest_submit_time")) == (False, False)
    assert (known.silence.seconds, unknown.HasField("silence"), unknown.silence.seconds) == (41, True, 0)
    assert known.ask_time.ToDatetime(tzinfo=UTC) == CLOCK.now()
    assert (unknown.records_only, unknown.latest_submit_time.ToDatetime(tzinfo=UTC)) == (True, START)


async def test_states_of_a_later_release_are_asked_for_again(peer: Peer, channels: Channels):
    """ERR-3: a job reads as running, a verdict as unknown, health as degraded; no gate of theirs ends a step."""
    remote = RemoteProvider(channels.to("provider_adapter"), 5, 5, CLOCK)
    peer.answer = provider.PollResponse(state=99)
    assert (await remote.poll(CHANNEL, CLIP, sent())).state == "running"
    peer.answer = provider.ReconcileResponse(verdict=99)
    assert (await remote.reconcile(CHANNEL, CLIP, sent(), 41.0)).verdict == "unknown"
    peer.answer = provider.PollResponse(state=provider_pb2.JOB_STATE_CANCELLED)
    assert (await remote.poll(CHANNEL, CLIP, sent())).state == "cancelled"
    later = health_pb2.SubjectHealth(subject=SUBJECT, state=99, effective_concurrency=0)
    _, views = wire.health_views(health_service_pb2.GetSnapshotResponse(subjects=[later]))
    assert (views["a/clip"].state, views["a/clip"].limit) == ("degraded", 0)
    peer.answer = capacity_service_pb2.ReserveResponse(refusal=capacity_pb2.Refusal(subject=SUBJECT, gate=99))
    refused = await RemoteCapacity(channels.to("capacity"), 5, 60, clock()).reserve(
        "l1", CLIP, HealthView(), HealthView()
    )
    assert refused == Refused("supply a/clip", "another gate", 0, 0)


async def test_a_refusal_names_level_and_gate(peer: Peer, channels: Channels):
    """CAP-1, CAP-4: and the views of health that the decision was made on travel with the question."""
    refusal = capacity_pb2.Refusal(
        subject=subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_SUPPLY, id="a/clip"),
        gate=capacity_pb2.GATE_STALE_HEALTH,
        limit=1,
        used=0,
    )
    peer.answer = capacity_service_pb2.ReserveResponse(refusal=refusal)
    health = HealthView("probing", epoch=4, revision=9, limit=1)
    answer = await RemoteCapacity(channels.to("capacity"), 5, 60, clock()).reserve("l1", CLIP, HealthView(), health)
    assert answer == Refused("supply a/clip", "stale_health", 1, 0)
    asked = peer.asked[0]
    assert (asked.holder, asked.ttl.seconds, asked.channel_id) == ("routing", 60, "a")
    assert (asked.supply_health.epoch, asked.supply_health.revision, asked.supply_health.limit) == (4, 9, 1)
    assert not asked.channel_health.HasField("limit")


@pytest.mark.parametrize(
    ("feedback", "pace", "used", "retry_s"),
    [
        (SILENT, capacity_pb2.PACE_UNSPECIFIED, None, 0),
        (Feedback(Pace.SUCCEEDED, used_tokens=0), capacity_pb2.PACE_SUCCEEDED, 0, 0),
        (Feedback(Pace.CONGESTED), capacity_pb2.PACE_CONGESTED, None, 0),
        (Feedback(Pace.CONGESTED, 1500), capacity_pb2.PACE_CONGESTED, None, 1.5),
    ],
)
async def test_a_release_tells_pace_and_tokens(
    peer: Peer, channels: Channels, feedback: Feedback, pace: int, used: int | None, retry_s: float
):
    """CAP-6, CAP-7: how the work ended, the provider's own Retry-After, and the tokens used; none is not zero."""
    peer.answer = capacity_service_pb2.ReleaseResponse(released=True)
    await RemoteCapacity(channels.to("capacity"), 5, 60, clock()).release("l1", feedback)
    (asked,) = peer.asked
    assert (asked.lease_id, asked.holder, asked.pace) == ("l1", "routing", pace)
    assert (asked.used_tokens if asked.HasField("used_tokens") else None) == used
    assert asked.retry_after.ToMilliseconds() == retry_s * 1000


async def test_a_renewal_teaches_what_this_process_was_given(peer: Peer, channels: Channels):
    """CAP-9: leases travel along as they were last prolonged; what lapsed, or another was given, is not told."""
    time = clock()
    remote = RemoteCapacity(channels.to("capacity"), 5, 60, time)
    lease = capacity_pb2.Lease(id="l1", holder="routing", supply_id="a/clip")
    lease.reserve_time.FromSeconds(1000)
    lease.expire_time.FromSeconds(1060)
    peer.answer = capacity_service_pb2.ReserveResponse(lease=lease)
    await remote.reserve("l1", CLIP, HealthView(), HealthView())
    ends = []
    for pause, renewed in ((20, ["l1"]), (30, []), (20, []), (40, [])):
        time.advance(pause)
        peer.answer = capacity_service_pb2.RenewLeasesResponse(renewed_lease_ids=renewed)
        assert await remote.renew(["l1", "of-another"]) == frozenset()
        ends.append([(item.id, item.expire_time.seconds) for item in peer.asked[-1].leases])
    assert ends == [[("l1", 1060)], [("l1", 1080)], [("l1", 1080)], []]


@pytest.mark.parametrize("ended", ["released", "lost"])
async def test_what_has_ended_is_not_taught(peer: Peer, channels: Channels, ended: str):
    """CAP-2, CAP-9: a lease that was given back or lost is never told as held again."""
    remote = RemoteCapacity(channels.to("capacity"), 5, 60, clock())
    lease = capacity_pb2.Lease(id="l1")
    lease.expire_time.FromSeconds(1060)
    peer.answer = capacity_service_pb2.ReserveResponse(lease=lease)
    await remote.reserve("l1", CLIP, HealthView(), HealthView())
    if ended == "released":
        peer.answer = capacity_service_pb2.ReleaseResponse(released=True)
        await remote.release("l1")
    else:
        peer.answer = capacity_service_pb2.RenewLeasesResponse(lost_lease_ids=["l1"])
        assert await remote.renew(["l1"]) == {"l1"}
    peer.answer = capacity_service_pb2.RenewLeasesResponse(lost_lease_ids=["l1"])
    await remote.renew(["l1"])
    assert not peer.asked[-1].leases


async def test_the_view_shows_what_pacing_allows(peer: Peer, channels: Channels):
    """CAP-4: the adaptive limit and a freeze reach the snapshot of a decision; neither is told where there is none."""
    item = capacity_pb2.SubjectCapacity(subject=SUBJECT, configured=5, in_use=1, adaptive=0)
    item.frozen_until_time.FromSeconds(1000)
    plain = capacity_pb2.SubjectCapacity(subject=subject_pb2.Subject(kind=SUBJECT.kind, id="b/clip"))
    _, _, views = wire.capacity_views(capacity_service_pb2.GetCapacityResponse(subjects=[item, plain]))
    assert views["a/clip"] == CapacityView(5, 1, adaptive=0, frozen_until=datetime.fromtimestamp(1000, UTC))
    assert views["b/clip"] == CapacityView()


async def test_the_view_shows_when_a_window_has_room(peer: Peer, channels: Channels):
    """CAP-1: the time at which the first of a full minute leaves it reaches the snapshot of a decision."""
    item = capacity_pb2.SubjectCapacity(subject=SUBJECT, requests_per_minute=3, requests_used=3)
    item.room_time.FromSeconds(1000)
    _, _, views = wire.capacity_views(capacity_service_pb2.GetCapacityResponse(subjects=[item]))
    assert views["a/clip"] == CapacityView(rpm=3, rpm_used=3, room_at=datetime.fromtimestamp(1000, UTC))


@pytest.mark.parametrize(("known", "refused"), [(6, "governance_backend_down"), (7, ""), (8, "revision_conflict")])
async def test_quotes_under_other_rules_are_no_quotes(peer: Peer, channels: Channels, known: int, refused: str):
    """COST-3, COST-4: prices of another catalogue revision than the one asked for are no answer."""
    peer.answer = quotes.QuoteCandidatesResponse(
        quotes=[quote_pb2.CandidateQuote(supply_id="a/clip", unpriced_reason="no rule")], catalog_revision=known
    )
    asking = RemoteQuotes(channels.to("cost_quote"), 5).quote("video", "per_second", [Priced(CLIP, {})], 7)
    if refused:
        with pytest.raises(Fault) as caught:
            await asking
        assert (caught.value.code, caught.value.retryable) == (refused, True)
    else:
        assert (await asking)["a/clip"].unpriced_reason == "no rule"


async def test_what_all_would_be_sent_is_said_once_to_be_priced(peer: Peer, channels: Channels):
    """COST-3: one request, long as it may be, is told once; only who would be sent another one has it told apart."""
    peer.answer = quotes.QuoteCandidatesResponse(catalog_revision=7)
    asked, lesser = {"prompt": "a boat", "duration_s": 5}, {"prompt": "a boat", "duration_s": 4}
    candidates = [Priced(supply("c/clip"), lesser), Priced(supply("a/clip"), asked), Priced(supply("b/clip"), asked)]
    await RemoteQuotes(channels.to("cost_quote"), 5).quote("video", "per_second", candidates, 7)
    [told] = peer.asked
    assert dict(told.input) == asked
    assert [item.supply_id for item in told.candidates] == ["c/clip", "a/clip", "b/clip"]
    assert [dict(item.input) if item.HasField("input") else None for item in told.candidates] == [lesser, None, None]


async def test_usage_is_settled_in_one_question(peer: Peer, channels: Channels):
    """COST-3: what calls used is told with the version and the revision that quoted them; a price or its reason comes
    back for each."""
    priced = quote_pb2.Quote(amount=money_pb2.Money(currency_code="CNY", units=3), kind=quote_pb2.QUOTE_KIND_EXACT)
    peer.answer = quotes.PriceUsageResponse(
        prices=[quotes.UsagePrice(key="b", unpriced_reason="no figure"), quotes.UsagePrice(key="a", price=priced)]
    )
    at = datetime(2026, 11, 30, 12, tzinfo=UTC)
    items = [
        UsageItem("a", "video", "a/clip", "r", 2, Usage(output_tokens=0), {"resolution": "720p"}, 7, at),
        UsageItem("b", "video", "a/clip", "r", 2, Usage()),
    ]
    found = await RemoteQuotes(channels.to("cost_quote"), 5).price_usage(items)
    assert found["a"] == UsagePrice(Money("CNY", Decimal(3)), "exact")
    assert found["b"] == UsagePrice(None, unpriced_reason="no figure")
    [asked] = peer.asked
    first, second = asked.items
    assert (first.rule_id, first.rule_version, first.catalog_revision) == ("r", 2, 7)
    assert (first.usage.HasField("output_tokens"), first.usage.HasField("input_tokens")) == (True, False)
    assert (dict(first.input), first.submit_time.ToDatetime(tzinfo=UTC)) == ({"resolution": "720p"}, at)
    assert not second.HasField("submit_time")
