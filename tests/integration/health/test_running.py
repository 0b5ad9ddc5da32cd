"""The context at work: its own tickers, the machine's clock, a real database, two replicas."""

import asyncio

from google.protobuf.timestamp_pb2 import Timestamp

from libs.host.world import real_world
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from pointsman.common.v1 import failure_pb2, subject_pb2
from pointsman.health.v1 import health_pb2 as pb
from pointsman.health.v1 import health_service_pb2 as service_pb
from pointsman.health.v1.health_service_pb2_grpc import HealthServiceStub
from services.health.compose import build
from services.health.settings import Settings

TIMEOUT_S = 20.0
CHANNEL = subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_CHANNEL, id="a")
SUPPLY = subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_SUPPLY, id="a/x")


async def replica(url: str):
    """One process' worth of the context: itself, its server, a client."""
    context = build(Settings(database_url=url, tick_s=0.05, poll_s=0.05), None, real_world())
    await context.migrate()
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    for _, add in context.registrations:
        server.add(add)
    await server.start()
    await context.start()
    channels = Channels(registry=registry, caller="routing")
    return context, server, channels, HealthServiceStub(channels.to("health"))


def targets() -> service_pb.ApplyTargetsRequest:
    """A Channel and a Supply with a cooldown of a fifth of a second."""
    thresholds = pb.Thresholds()
    thresholds.cooldown.FromMilliseconds(200)
    made = [
        pb.Target(subject=CHANNEL, configured_concurrency=4, thresholds=thresholds),
        pb.Target(subject=SUPPLY, channel_id="a", configured_concurrency=4, thresholds=thresholds),
    ]
    return service_pb.ApplyTargetsRequest(catalog_revision=1, targets=made)


def outcome(attempt: str, epoch: int, code: str = "") -> service_pb.ReportOutcomeRequest:
    """An outcome observed now."""
    now = Timestamp()
    now.GetCurrentTime()
    told = pb.Outcome(
        attempt_id=attempt, channel_id="a", supply_id="a/x", channel_epoch=1, supply_epoch=epoch, observe_time=now,
        dispatch_time=now,
    )  # fmt: skip
    if code:
        told.failure.CopyFrom(
            failure_pb2.Failure(
                category=failure_pb2.FAILURE_CATEGORY_SUPPLY, scope=failure_pb2.FAILURE_SCOPE_SUPPLY, code=code
            )
        )
    return service_pb.ReportOutcomeRequest(outcome=told)


async def test_a_watcher_of_one_replica_sees_what_the_other_did(pg_url: str) -> None:
    """HLT-1, HLT-14: an outcome told to one replica, and the end of the cooldown, reach a watcher of the other."""
    first, second = await replica(pg_url), await replica(pg_url)
    watching, telling = first[3], second[3]
    await telling.ApplyTargets(targets(), timeout=TIMEOUT_S)
    call = watching.WatchSnapshot(service_pb.WatchSnapshotRequest(), timeout=TIMEOUT_S)
    states: list[int] = []

    async def seen(state: int) -> None:
        async for message in call:
            states.extend(health.state for health in message.subjects if health.subject == SUPPLY)
            if state in states:
                return

    await asyncio.wait_for(seen(pb.HEALTH_STATE_HEALTHY), TIMEOUT_S)
    await telling.ReportOutcome(outcome("1", 1, "model_unavailable"), timeout=TIMEOUT_S)
    # A watcher is told states, not every passing one: on a busy machine the cooldown may end before the next look.
    await asyncio.wait_for(seen(pb.HEALTH_STATE_PROBING), TIMEOUT_S)
    call.cancel()
    for context, server, channels, _ in (first, second):
        await channels.close()
        await server.close(grace_s=1.0)
        await context.stop()


async def test_outcomes_told_to_several_replicas_at_once_are_one_history(pg_url: str) -> None:
    """HLT-12, HLT-13: concurrent reports through two replicas count once each, and the history has no hole."""
    replicas = [await replica(pg_url), await replica(pg_url)]
    stubs = [made[3] for made in replicas]
    await stubs[0].ApplyTargets(targets(), timeout=TIMEOUT_S)
    requests = [outcome(str(number), 1, "rate_limited_by_name") for number in range(12)] * 2
    answers = await asyncio.gather(
        *[stubs[index % 2].ReportOutcome(request, timeout=TIMEOUT_S) for index, request in enumerate(requests)]
    )
    assert sum(answer.recorded for answer in answers) == 12
    listing = service_pb.ListHealthEventsRequest(subject=SUPPLY, page_size=1000)
    events = (await stubs[1].ListHealthEvents(listing, timeout=TIMEOUT_S)).events
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert [event.kind for event in events].count("opened") == 1
    for context, server, channels, _ in replicas:
        await channels.close()
        await server.close(grace_s=1.0)
        await context.stop()
