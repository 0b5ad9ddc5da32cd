"""Health through its real wire, on every store."""

import asyncio
from typing import Any

import grpc
import pytest

from libs.faults.wire import from_rpc_error
from pointsman.common.v1 import subject_pb2
from pointsman.health.v1 import health_pb2 as pb
from pointsman.health.v1 import health_service_pb2 as service_pb
from tests.contract.health.conftest import CHANNEL, OTHER, SUPPLY, TIMEOUT_S, HealthWire, failure, seconds

OPEN = pb.HEALTH_STATE_CIRCUIT_OPEN
PROBING = pb.HEALTH_STATE_PROBING
RECOVERING = pb.HEALTH_STATE_RECOVERING
HEALTHY = pb.HEALTH_STATE_HEALTHY
DEGRADED = pb.HEALTH_STATE_DEGRADED
DISABLED = pb.HEALTH_STATE_DISABLED


async def refused(call: Any) -> str:
    """The code that a call is refused with."""
    with pytest.raises(grpc.aio.AioRpcError) as answer:
        await call
    return from_rpc_error(answer.value).code


async def opened(wire: HealthWire) -> None:
    """Open the Supply by its trigger that needs one failure."""
    await wire.report(failure("model_unavailable"))
    assert (await wire.health()).state == OPEN


@pytest.mark.parametrize(
    "slots, allowed", [(1, [1, 1, 1]), (2, [1, 1, 1]), (3, [1, 2, 2]), (4, [1, 2, 3]), (8, [2, 4, 6])]
)
async def test_the_ladder_is_seen_through_the_snapshot(wire: HealthWire, slots: int, allowed: list[int]) -> None:
    """HLT-1, HLT-2, HLT-3: cooldown, one slot twice, then 25, 50, 75 %, then no limit; the first asker sees probing."""
    await wire.apply(concurrency=slots)
    await opened(wire)
    assert (await wire.health()).effective_concurrency == 0
    wire.clock.advance(59.999)
    assert (await wire.health()).state == OPEN
    wire.clock.advance(0.001)
    seen = []
    for _ in range(5):
        health = await wire.health()
        seen.append((health.state, health.recovery_successes, health.effective_concurrency))
        await wire.report()
    assert seen == [
        (PROBING, 0, 1), (PROBING, 1, 1), (RECOVERING, 2, allowed[0]), (RECOVERING, 3, allowed[1]),
        (RECOVERING, 4, allowed[2]),
    ]  # fmt: skip
    health = await wire.health()
    assert health.state == HEALTHY
    assert not health.HasField("effective_concurrency")
    assert [event.recovery_successes for event in (await wire.events())[-5:]] == [1, 2, 3, 4, 5]


async def test_a_failure_on_the_ladder_reopens_with_the_whole_cooldown(wire: HealthWire) -> None:
    """HLT-4: one failure in recovering opens at once, successes 0, the cooldown counted from the failure."""
    await wire.apply()
    await opened(wire)
    wire.clock.advance(60)
    await wire.report()
    await wire.report()
    wire.clock.advance(20)
    await wire.report(failure("provider_error"))
    health = await wire.health()
    assert (health.state, health.recovery_successes, health.epoch) == (OPEN, 0, 3)
    assert health.cooldown_until_time.ToSeconds() == wire.clock.now().timestamp() + 60


async def test_content_changes_nothing(wire: HealthWire) -> None:
    """HLT-5: content, request and unknown outcomes leave state, counts, streaks and history as they were."""
    await wire.apply()
    await wire.report(failure("provider_error"))
    before = [await wire.health(), await wire.health(CHANNEL), await wire.events()]
    for kind in ("content/request", "request/request", "unknown/attempt"):
        answer = await wire.report(failure("content_rejected", kind))
        assert answer.recorded
        assert not answer.events
    assert [await wire.health(), await wire.health(CHANNEL), await wire.events()] == before


async def test_a_success_from_before_the_trip_is_ignored_and_written(wire: HealthWire) -> None:
    """HLT-6: an old success cannot close the circuit or climb; it is an event `stale_ignored`."""
    await wire.apply()
    await opened(wire)
    old = (1, 1)
    answer = await wire.report(epochs=old)
    assert [event.kind for event in answer.events] == ["stale_ignored"]
    wire.clock.advance(60)
    assert (await wire.health()).state == PROBING
    answer = await wire.report(epochs=old)
    assert [event.kind for event in answer.events] == ["stale_ignored"]
    health = await wire.health()
    assert (health.state, health.recovery_successes) == (PROBING, 0)


async def test_a_failure_observed_before_the_state_began_is_ignored(wire: HealthWire) -> None:
    """HLT-6: a failure counts if it was observed after the present state began, whatever its epoch."""
    await wire.apply()
    await opened(wire)
    wire.clock.advance(60)
    assert (await wire.health()).state == PROBING
    await wire.report(failure("provider_error"), epochs=(1, 1), observed_s=-0.5)
    assert (await wire.health()).state == PROBING
    await wire.report(failure("provider_error"), epochs=(1, 1))
    assert (await wire.health()).state == OPEN


@pytest.mark.parametrize(
    "code, cooldown", [("key_invalid", 300), ("account_forbidden", 300), ("balance_exhausted", 300)]
)
async def test_account_failures_open_the_channel_at_once(wire: HealthWire, code: str, cooldown: int) -> None:
    """HLT-8: 401, 403 and an exhausted balance open the Channel with 300 s; its Supply is not touched."""
    await wire.apply()
    await wire.report(failure(code, "supply/channel"))
    channel = await wire.health(CHANNEL)
    assert (channel.state, channel.reason) == (OPEN, code)
    assert channel.cooldown_until_time.ToSeconds() == wire.clock.now().timestamp() + cooldown
    assert (await wire.health()).state == HEALTHY


async def test_two_failures_to_connect_in_a_row_open_the_channel(wire: HealthWire) -> None:
    """HLT-8: DNS, TLS and connect failures open on the second in a row, for 60 s; a success between starts anew."""
    await wire.apply()
    broken = failure("connect_failed", "supply/channel")
    await wire.report(broken)
    await wire.report()
    await wire.report(broken)
    assert (await wire.health(CHANNEL)).state == HEALTHY
    await wire.report(broken)
    channel = await wire.health(CHANNEL)
    assert channel.state == OPEN
    assert channel.cooldown_until_time.ToSeconds() == wire.clock.now().timestamp() + 60


async def test_five_rate_limits_in_a_row_open_for_the_longer_wait(wire: HealthWire) -> None:
    """HLT-8: five consecutive 429 or out-of-stock open the Supply for max(Retry-After, 30 s)."""
    await wire.apply()
    for code in ("rate_limited", "out_of_stock", "rate_limited", "rate_limited"):
        await wire.report(failure(code, "capacity/supply", 2))
    assert (await wire.health()).state == DEGRADED
    await wire.report(failure("rate_limited", "capacity/supply", 45))
    health = await wire.health()
    assert health.state == OPEN
    assert health.cooldown_until_time.ToSeconds() == wire.clock.now().timestamp() + 45
    assert (await wire.health(CHANNEL)).state == HEALTHY


async def test_one_code_on_two_supplies_opens_their_channel(wire: HealthWire) -> None:
    """HLT-8: the same infrastructure code on two Supplies within 60 s is a failure of the Channel."""
    await wire.apply()
    await wire.report(failure("provider_error"))
    wire.clock.advance(61)
    await wire.report(failure("provider_error"), supply=OTHER)
    await wire.report(failure("malformed_reply"))
    assert (await wire.health(CHANNEL)).state == HEALTHY
    wire.clock.advance(59)
    await wire.report(failure("provider_error"))
    channel = await wire.health(CHANNEL)
    assert (channel.state, channel.reason) == (OPEN, "escalation:provider_error")


async def test_thresholds_of_the_catalogue_hold(wire: HealthWire) -> None:
    """HLT-8: every default can be overridden; a given cooldown holds for account triggers too."""
    await wire.apply(thresholds=pb.Thresholds(cooldown=seconds(5), consecutive_failures=1))
    await wire.report(failure("provider_error"))
    await wire.report(failure("key_invalid", "supply/channel"))
    for subject in (SUPPLY, CHANNEL):
        health = await wire.health(subject)
        assert health.state == OPEN
        assert health.cooldown_until_time.ToSeconds() == wire.clock.now().timestamp() + 5


async def test_two_failures_degrade_and_five_successes_restore(wire: HealthWire) -> None:
    """HLT-9: degraded keeps full capacity; it is left after five successes in a row."""
    await wire.apply()
    await wire.report(failure("provider_error"))
    await wire.report(failure("provider_error"))
    health = await wire.health()
    assert health.state == DEGRADED
    assert not health.HasField("effective_concurrency")
    for _ in range(4):
        await wire.report()
    assert (await wire.health()).state == DEGRADED
    await wire.report()
    assert (await wire.health()).state == HEALTHY


async def test_a_disabled_subject_takes_no_part(wire: HealthWire) -> None:
    """HLT-11: neither outcomes nor time move a disabled subject; enabling makes it healthy in a new epoch."""
    await wire.apply()
    before = await wire.health()
    disabled = await wire.set_state(DISABLED, reason="maintenance")
    assert (disabled.state, disabled.epoch, disabled.effective_concurrency) == (DISABLED, before.epoch + 1, 0)
    wire.clock.advance(3600)
    await wire.report()
    await wire.report(failure("model_unavailable"))
    assert (await wire.health()).state == DISABLED
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await wire.set_state(OPEN)
    assert from_rpc_error(refused.value).code == "conflict"
    assert (await wire.set_state(HEALTHY)).state == HEALTHY
    kinds = [event.kind for event in await wire.events()]
    assert kinds == ["declared", "disabled", "stale_ignored", "stale_ignored", "enabled"]


async def test_an_outcome_counts_once(wire: HealthWire) -> None:
    """HLT-13: outcomes are idempotent by Attempt, also when they are told at the same time."""
    await wire.apply()
    answers = await asyncio.gather(
        *[wire.report(failure("provider_error"), epochs=(1, 1), attempt="one") for _ in range(5)]
    )
    assert sorted(answer.recorded for answer in answers) == [False, False, False, False, True]
    again = await wire.report(epochs=(1, 1), attempt="one")
    assert not again.recorded
    assert not again.events
    health = await wire.health()
    assert (health.state, health.samples) == (HEALTHY, 1)


async def test_success_rates_come_with_their_interval(wire: HealthWire) -> None:
    """HLT-13: the success rate over the window with its Wilson interval; without samples there is none."""
    await wire.apply()
    assert not (await wire.health()).HasField("success_rate")
    for failed in (None, None, None, failure("provider_error")):
        await wire.report(failed)
    health = await wire.health()
    assert (health.samples, health.success_rate) == (4, 0.75)
    assert 0 < health.success_rate_low < 0.75 < health.success_rate_high < 1
    wire.clock.advance(61)
    assert (await wire.health()).samples == 0


async def test_events_are_immutable_counted_and_paged(wire: HealthWire) -> None:
    """HLT-12: sequences rise by one within a subject, every change has its event, pages leave none out."""
    await wire.apply()
    await opened(wire)
    wire.clock.advance(60)
    await wire.report()
    await wire.report(failure("provider_error"))
    events = await wire.events()
    assert [event.sequence for event in events] == [1, 2, 3, 4, 5]
    assert [event.kind for event in events] == ["declared", "opened", "probing", "step", "reopened"]
    assert [event.attempt_id for event in events] == ["", "attempt-1", "", "attempt-2", "attempt-3"]
    paged, token = [], ""
    while True:
        request = service_pb.ListHealthEventsRequest(page_size=2, page_token=token)
        page = await wire.stub.ListHealthEvents(request, timeout=TIMEOUT_S)
        paged += page.events
        token = page.next_page_token
        if not token:
            break
    assert [event for event in paged if event.subject == SUPPLY] == events
    assert len(paged) == len(events) + len(await wire.events(CHANNEL)) + len(await wire.events(OTHER))


async def test_a_state_of_the_past_is_explained(wire: HealthWire) -> None:
    """HLT-12: at a time or at a revision: state, reason, successes, cooldown, and the event that brought it there."""
    await wire.apply()
    await opened(wire)
    seen = await wire.health()
    wire.clock.advance(60)
    await wire.report()
    request = service_pb.ExplainStateRequest(subject=SUPPLY)
    now = await wire.stub.ExplainState(request, timeout=TIMEOUT_S)
    assert (now.health.state, now.health.recovery_successes, now.cause.kind) == (PROBING, 1, "probing")
    assert [event.kind for event in now.events] == ["probing", "step"]
    at = service_pb.ExplainStateRequest(subject=SUPPLY, at_time=seen.since_time)
    by_revision = service_pb.ExplainStateRequest(subject=SUPPLY, revision=seen.revision)
    for asked in (at, by_revision):
        then = await wire.stub.ExplainState(asked, timeout=TIMEOUT_S)
        assert (then.health.state, then.health.reason) == (OPEN, seen.reason)
        assert (then.cause.kind, then.cause.attempt_id) == ("opened", "attempt-1")
        assert then.health.cooldown_until_time == seen.cooldown_until_time
        assert then.health.revision == seen.revision


async def test_a_past_that_never_was(wire: HealthWire) -> None:
    """HLT-12: unknown subjects and times before the first event are `not_found`; nonsense is named."""
    await wire.apply()
    nobody = subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_SUPPLY, id="nobody")
    long_ago = service_pb.ExplainStateRequest(subject=SUPPLY)
    long_ago.at_time.FromSeconds(1)
    for request, code in (
        (service_pb.ExplainStateRequest(subject=nobody), "not_found"),
        (long_ago, "not_found"),
        (service_pb.ExplainStateRequest(), "validation_failed"),
        (service_pb.ExplainStateRequest(subject=SUPPLY, revision=-1), "validation_failed"),
    ):
        assert await refused(wire.stub.ExplainState(request, timeout=TIMEOUT_S)) == code
    assert not (await wire.stub.ListBreaches(service_pb.ListBreachesRequest(), timeout=TIMEOUT_S)).breaches


async def test_targets_are_declarative(wire: HealthWire) -> None:
    """HLT-8, HLT-11: an older catalogue is ignored, the absent are retired, the returning keep state and epoch."""
    assert await wire.apply(revision=3) == 3
    assert await wire.apply(revision=2, supplies=()) == 3
    await opened(wire)
    before = await wire.events()
    assert await wire.apply(revision=3) == 3
    assert await wire.events() == before
    await wire.apply(revision=4, supplies=(OTHER,))
    request = service_pb.GetSnapshotRequest()
    answer = await wire.stub.GetSnapshot(request, timeout=TIMEOUT_S)
    assert [subject.subject.id for subject in answer.subjects] == [CHANNEL.id, OTHER.id]
    await wire.apply(revision=5, concurrency=8)
    health = await wire.health()
    assert (health.state, health.epoch, health.configured_concurrency) == (OPEN, 2, 8)
    assert [event.kind for event in await wire.events()][-2:] == ["retired", "declared"]


async def test_the_catalogue_switches_only_when_its_word_changes(wire: HealthWire) -> None:
    """HLT-11: a catalogue told again does not undo an operator's word; a changed one does."""
    await wire.apply(revision=1)
    await wire.set_state(DISABLED)
    await wire.apply(revision=2)
    assert (await wire.health()).state == DISABLED
    await wire.apply(revision=3, disabled=(SUPPLY.id,))
    assert (await wire.health()).state == DISABLED
    await wire.apply(revision=4)
    assert (await wire.health()).state == HEALTHY


async def test_the_limit_changes_with_the_slots_and_everybody_hears(wire: HealthWire) -> None:
    """HLT-3: new slots in recovering give a new limit under a new revision, so that capacity believes it."""
    await wire.apply(concurrency=4)
    await opened(wire)
    wire.clock.advance(60)
    await wire.health()
    await wire.report()
    await wire.report()
    before = await wire.health()
    await wire.apply(revision=2, concurrency=16)
    after = await wire.health()
    assert (before.effective_concurrency, after.effective_concurrency) == (1, 4)
    assert after.revision == before.revision + 1
    assert after.since_time == before.since_time


async def test_a_watcher_hears_everything_first_and_then_what_changed(wire: HealthWire) -> None:
    """HLT-14: the stream begins with all subjects, tells a change, and ends with its caller."""
    await wire.apply()
    call = wire.stub.WatchSnapshot(service_pb.WatchSnapshotRequest(), timeout=TIMEOUT_S)
    stream = call.__aiter__()
    first = await anext(stream)
    assert len(first.subjects) == 3
    await wire.report(failure("model_unavailable"))
    second = await anext(stream)
    assert [(subject.subject.id, subject.state) for subject in second.subjects if subject.state == OPEN] == [
        (SUPPLY.id, OPEN)
    ]
    call.cancel()


async def test_names_that_were_never_declared_are_assembly_faults(wire: HealthWire) -> None:
    """CAT-6: an outcome of an unknown Supply is `source_not_configured`, and nothing is counted."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await wire.report(failure("provider_error"), epochs=(1, 1), attempt="early")
    assert from_rpc_error(refused.value).code == "source_not_configured"
    await wire.apply()
    assert (await wire.report(failure("provider_error"), attempt="early")).recorded


@pytest.mark.parametrize(
    "method, request_",
    [
        ("ReportOutcome", service_pb.ReportOutcomeRequest()),
        ("SetState", service_pb.SetStateRequest(subject=SUPPLY, state=PROBING, reason="x")),
        ("SetState", service_pb.SetStateRequest(subject=SUPPLY, state=HEALTHY)),
        ("GetSnapshot", service_pb.GetSnapshotRequest(subjects=[subject_pb2.Subject(id="x")])),
        ("ListHealthEvents", service_pb.ListHealthEventsRequest(page_size=1001)),
        ("ApplyTargets", service_pb.ApplyTargetsRequest()),
        (
            "ApplyTargets",
            service_pb.ApplyTargetsRequest(catalog_revision=1, targets=[pb.Target(subject=SUPPLY, channel_id="x")]),
        ),
    ],
)
async def test_what_cannot_be_is_refused_by_name(wire: HealthWire, method: str, request_: object) -> None:
    """ERR-2: a request that cannot be is INVALID_ARGUMENT and names the field."""
    await wire.apply()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await getattr(wire.stub, method)(request_, timeout=TIMEOUT_S)
    fault = from_rpc_error(refused.value)
    assert fault.code == "validation_failed"
    assert fault.errors
