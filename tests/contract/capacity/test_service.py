"""Capacity through its real wire, on every backend."""

from datetime import timedelta
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from libs.faults.wire import from_rpc_error
from pointsman.capacity.v1 import capacity_pb2 as pb
from pointsman.capacity.v1 import capacity_service_pb2 as service_pb
from pointsman.common.v1 import subject_pb2
from tests.contract.capacity.conftest import TIMEOUT_S, Bench

CHANNEL = subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_CHANNEL, id="a")
SUPPLY = subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_SUPPLY, id="a/x")
VIDEO = subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_GLOBAL, id="video")


def ttl(seconds: float = 30) -> Duration:
    """A duration."""
    made = Duration()
    made.FromTimedelta(timedelta(seconds=seconds))
    return made


async def apply(stub: Any, revision: int = 1, slots: int = 1, *health: pb.HealthLimit) -> int:
    """Declare a Channel without gates and a Supply with slots."""
    limits = [
        pb.SubjectLimits(subject=CHANNEL),
        pb.SubjectLimits(subject=SUPPLY, channel_id="a", concurrency=slots),
        pb.SubjectLimits(subject=VIDEO, concurrency=100, requests_per_minute=50, tokens_per_minute=1000),
    ]
    request = service_pb.ApplyLimitsRequest(catalog_revision=revision, limits=limits, health=health)
    return int((await stub.ApplyLimits(request, timeout=TIMEOUT_S)).catalog_revision)


def reservation(lease_id: str = "1", **changes: Any) -> Any:
    """A reservation with healthy views."""
    view = pb.HealthLimit(epoch=1, revision=1)
    request: Any = service_pb.ReserveRequest(
        lease_id=lease_id, holder="h", kind="video", channel_id="a", supply_id="a/x", channel_health=view,
        supply_health=view, tokens=3, ttl=ttl(),
    )  # fmt: skip
    for name, value in changes.items():
        if value is None:
            request.ClearField(name)
        elif isinstance(value, (str, int)):
            setattr(request, name, value)
        else:
            getattr(request, name).CopyFrom(value)
    return request


async def figure(stub: Any, subject: subject_pb2.Subject = SUPPLY) -> pb.SubjectCapacity:
    """One level's figures."""
    answer = await stub.GetCapacity(service_pb.GetCapacityRequest(subjects=[subject]), timeout=TIMEOUT_S)
    (found,) = answer.subjects
    return found


async def test_reserve_renew_release(stub: Any, ground: Bench) -> None:
    """CAP-1, CAP-2: a lease is given, shown, renewed, given back once; a refusal names gate, limit and use."""
    assert await apply(stub) == 1
    lease = (await stub.Reserve(reservation(), timeout=TIMEOUT_S)).lease
    assert (lease.id, lease.holder, lease.supply_id, lease.supply_epoch, lease.tokens) == ("1", "h", "a/x", 1, 3)
    assert lease.expire_time.ToSeconds() - lease.reserve_time.ToSeconds() == 30
    refusal = (await stub.Reserve(reservation("2"), timeout=TIMEOUT_S)).refusal
    assert (refusal.subject, refusal.gate, refusal.limit, refusal.used) == (SUPPLY, pb.GATE_CONCURRENCY, 1, 1)
    assert not refusal.HasField("retry_time")
    await ground.advance(20)
    request = service_pb.RenewLeasesRequest(holder="h", lease_ids=["1", "2"], ttl=ttl())
    renewal = await stub.RenewLeases(request, timeout=TIMEOUT_S)
    assert (list(renewal.renewed_lease_ids), list(renewal.lost_lease_ids)) == (["1"], ["2"])
    answer = await stub.GetCapacity(service_pb.GetCapacityRequest(include_leases=True), timeout=TIMEOUT_S)
    assert [(held.id, held.expire_time.ToSeconds() - lease.reserve_time.ToSeconds()) for held in answer.leases] == [
        ("1", 50)
    ]
    release = service_pb.ReleaseRequest(lease_id="1", holder="h", used_tokens=7)
    assert (await stub.Release(release, timeout=TIMEOUT_S)).released
    assert not (await stub.Release(release, timeout=TIMEOUT_S)).released
    whole = await figure(stub, VIDEO)
    assert (whole.in_use, whole.requests_used, whole.tokens_used, whole.requests_per_minute) == (0, 1, 7, 50)


async def test_a_window_tells_when_to_come_back(stub: Any, ground: Bench) -> None:
    """CAP-1: a refusal by a window carries the earliest time of a retry."""
    limits = [
        pb.SubjectLimits(subject=CHANNEL, requests_per_minute=1),
        pb.SubjectLimits(subject=SUPPLY, channel_id="a"),
    ]
    await stub.ApplyLimits(service_pb.ApplyLimitsRequest(catalog_revision=1, limits=limits), timeout=TIMEOUT_S)
    await stub.Reserve(reservation(), timeout=TIMEOUT_S)
    refusal = (await stub.Reserve(reservation("2"), timeout=TIMEOUT_S)).refusal
    assert (refusal.subject, refusal.gate) == (CHANNEL, pb.GATE_REQUESTS)
    assert refusal.retry_time.ToSeconds() == ground.clock.now().timestamp() + 60
    assert (await figure(stub, CHANNEL)).room_time == refusal.retry_time
    assert not (await figure(stub)).HasField("room_time")


async def test_the_ladder_is_seen_through_capacity(stub: Any) -> None:
    """CAP-4, HLT-2: effective is min(configured, what health allows), as soon as health was heard."""
    await apply(stub, 1, 4)
    assert (await figure(stub)).effective == 4
    for revision, limit, effective in ((2, 0, 0), (3, 1, 1), (4, 1, 1), (5, 2, 2), (6, 3, 3), (7, None, 4)):
        health = pb.HealthLimit(subject=SUPPLY, epoch=2, revision=revision, limit=limit)
        await stub.ApplyLimits(service_pb.ApplyLimitsRequest(health=[health]), timeout=TIMEOUT_S)
        found = await figure(stub)
        assert (found.configured, found.effective, found.health.revision) == (4, effective, revision)
        outcome = await stub.Reserve(reservation(f"{revision}", supply_health=health), timeout=TIMEOUT_S)
        assert outcome.WhichOneof("outcome") == ("lease" if effective else "refusal")
        if effective:
            release = service_pb.ReleaseRequest(lease_id=f"{revision}", holder="h")
            assert (await stub.Release(release, timeout=TIMEOUT_S)).released


async def test_an_older_view_is_told_so(stub: Any) -> None:
    """CAP-4: who decided on health that has changed is told `stale_health` with both revisions."""
    await apply(stub, 1, 4, pb.HealthLimit(subject=SUPPLY, epoch=2, revision=9, limit=1))
    refusal = (await stub.Reserve(reservation(), timeout=TIMEOUT_S)).refusal
    assert (refusal.gate, refusal.limit, refusal.used) == (pb.GATE_STALE_HEALTH, 9, 1)


async def test_a_release_is_told_to_watchers(stub: Any) -> None:
    """CAP-10: a release is a hint to whoever watches; the stream ends with its caller."""
    await apply(stub)
    await stub.Reserve(reservation(), timeout=TIMEOUT_S)
    call = stub.WatchCapacity(service_pb.WatchCapacityRequest(), timeout=TIMEOUT_S)
    hint = call.__aiter__().__anext__()
    # The stream has begun once it has looked at the figures; a hint from before that is found by looking.
    await stub.Release(service_pb.ReleaseRequest(lease_id="1", holder="h"), timeout=TIMEOUT_S)
    await apply(stub, 2)
    assert SUPPLY in list((await hint).subjects)
    call.cancel()


async def test_an_older_catalogue_is_ignored(stub: Any) -> None:
    """CAP-1: levels are declared by catalogue revision; revision 0 tells health alone."""
    assert await apply(stub, 5, 2) == 5
    assert await apply(stub, 4, 9) == 5
    assert (await figure(stub)).configured == 2
    answer = await stub.ApplyLimits(service_pb.ApplyLimitsRequest(), timeout=TIMEOUT_S)
    assert answer.catalog_revision == 5


@pytest.mark.parametrize(
    "changes, pointer",
    [
        ({"lease_id": ""}, "/lease_id"),
        ({"holder": ""}, "/holder"),
        ({"kind": ""}, "/kind"),
        ({"ttl": None}, "/ttl"),
        ({"ttl": ttl(-1)}, "/ttl"),
        ({"ttl": ttl(86401)}, "/ttl"),
        ({"tokens": -1}, "/tokens"),
        ({"tokens": 1001}, "/tokens"),
        ({"channel_health": None}, "/channel_health"),
    ],
)
async def test_a_reservation_that_cannot_be_is_refused_by_name(stub: Any, changes: dict, pointer: str) -> None:
    """CAP-3, ERR-2: no lease without an end, an owner or a view of health; the field is named."""
    await apply(stub)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.Reserve(reservation(**changes), timeout=TIMEOUT_S)
    fault = from_rpc_error(refused.value)
    assert (fault.code, fault.errors[0].pointer) == ("validation_failed", pointer)


@pytest.mark.parametrize(
    "method, request_",
    [
        ("RenewLeases", service_pb.RenewLeasesRequest(lease_ids=["1"], ttl=ttl())),
        ("RenewLeases", service_pb.RenewLeasesRequest(holder="h", lease_ids=["1"])),
        ("Release", service_pb.ReleaseRequest(lease_id="1")),
        ("GetCapacity", service_pb.GetCapacityRequest(subjects=[subject_pb2.Subject(id="x")])),
        ("ApplyLimits", service_pb.ApplyLimitsRequest(limits=[pb.SubjectLimits(subject=CHANNEL)])),
        (
            "ApplyLimits",
            service_pb.ApplyLimitsRequest(
                catalog_revision=1, limits=[pb.SubjectLimits(subject=SUPPLY, channel_id="nowhere")]
            ),
        ),
    ],
)
async def test_what_cannot_be_is_refused(stub: Any, method: str, request_: object) -> None:
    """ERR-2: a request that cannot be is INVALID_ARGUMENT and names the field."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await getattr(stub, method)(request_, timeout=TIMEOUT_S)
    fault = from_rpc_error(refused.value)
    assert fault.code == "validation_failed"
    assert fault.errors


async def test_an_unknown_supply_is_an_assembly_fault(stub: Any) -> None:
    """CAT-6: what was never declared is `source_not_configured`, never a refusal that one waits for."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.Reserve(reservation(), timeout=TIMEOUT_S)
    fault = from_rpc_error(refused.value)
    assert (fault.code, fault.retryable) == ("source_not_configured", False)
