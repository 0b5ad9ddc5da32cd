"""The whole context behind its real wire, once over memory and once over PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import text

from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.store.database import Database
from libs.store.migrations import migrate
from pointsman.common.v1 import failure_pb2, subject_pb2
from pointsman.health.v1 import health_pb2 as pb
from pointsman.health.v1 import health_service_pb2 as service_pb
from pointsman.health.v1.health_service_pb2_grpc import HealthServiceStub
from services.health.compose import VERSIONS, build
from services.health.ports import HealthStore
from services.health.settings import Settings
from services.health.store.memory import MemoryHealthStore
from services.health.store.postgres import PostgresHealthStore
from tests.support.worlds import SteeredClock, steered_world

TIMEOUT_S = 10.0
EMPTY = (
    "TRUNCATE channel_health, supply_health, health_event, outcome RESTART IDENTITY",
    "UPDATE catalog SET revision = 0",
)


async def emptied(url: str) -> str:
    """The URL, migrated and without rows."""
    await migrate(url, schema="health", versions=VERSIONS)
    database = Database(url, schema="health")
    async with database.unit() as tx:
        for statement in EMPTY:
            await tx.execute(text(statement))
    await database.close()
    return url


@pytest.fixture(params=["memory", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A store without rows."""
    if request.param == "memory":
        return "memory:"
    return asyncio.run(emptied(request.getfixturevalue("pg_module_url")))


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[HealthStore]:
    """The port alone."""
    made: HealthStore = MemoryHealthStore()
    if database_url != "memory:":
        made = PostgresHealthStore(Database(database_url, schema="health"))
    yield made
    await made.close()


CHANNEL = subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_CHANNEL, id="ark-main")
SUPPLY = subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_SUPPLY, id="ark-main/seedance")
OTHER = subject_pb2.Subject(kind=subject_pb2.SUBJECT_KIND_SUPPLY, id="ark-main/seedream")

CATEGORY: dict[str, Any] = {"content": 1, "request": 2, "supply": 3, "capacity": 4, "unknown": 5}
SCOPE: dict[str, Any] = {"request": 1, "supply": 2, "channel": 3, "attempt": 4}


def failure(code: str, kind: str = "supply/supply", retry_after_s: float | None = None) -> failure_pb2.Failure:
    """A failure as routing reports it; `kind` is "category/scope"."""
    category, _, scope = kind.partition("/")
    made = failure_pb2.Failure(category=CATEGORY[category], scope=SCOPE[scope], code=code, message=code, retryable=True)
    if retry_after_s is not None:
        made.retry_after.FromMilliseconds(round(retry_after_s * 1000))
    return made


@dataclass
class HealthWire:
    """A client of the context, with its clock in hand."""

    stub: Any
    clock: SteeredClock
    attempts: int = 0

    async def apply(
        self, revision: int = 1, concurrency: int = 4, supplies: tuple[subject_pb2.Subject, ...] = (SUPPLY, OTHER),
        thresholds: pb.Thresholds | None = None, disabled: tuple[str, ...] = (),
    ) -> int:  # fmt: skip
        """Declare one Channel and its Supplies."""
        targets = [pb.Target(subject=CHANNEL, configured_concurrency=concurrency)]
        targets += [
            pb.Target(subject=supply, channel_id=CHANNEL.id, configured_concurrency=concurrency) for supply in supplies
        ]
        for target in targets:
            target.disabled = target.subject.id in disabled
            if thresholds is not None:
                target.thresholds.CopyFrom(thresholds)
        request = service_pb.ApplyTargetsRequest(catalog_revision=revision, targets=targets)
        return int((await self.stub.ApplyTargets(request, timeout=TIMEOUT_S)).catalog_revision)

    async def health(self, subject: subject_pb2.Subject = SUPPLY) -> pb.SubjectHealth:
        """One subject's health."""
        request = service_pb.GetSnapshotRequest(subjects=[subject])
        (found,) = (await self.stub.GetSnapshot(request, timeout=TIMEOUT_S)).subjects
        return found

    async def report(
        self, code: failure_pb2.Failure | None = None, *, epochs: tuple[int, int] | None = None, attempt: str = "",
        supply: subject_pb2.Subject = SUPPLY, observed_s: float = 0.0,
    ) -> service_pb.ReportOutcomeResponse:  # fmt: skip
        """Report an outcome of a new Attempt, dispatched in the present epochs, observed `observed_s` from now."""
        if epochs is None:
            epochs = ((await self.health(CHANNEL)).epoch, (await self.health(supply)).epoch)
        self.attempts += 1
        now = Timestamp()
        now.FromMicroseconds(round((self.clock.now().timestamp() + observed_s) * 1_000_000))
        outcome = pb.Outcome(
            attempt_id=attempt or f"attempt-{self.attempts}", channel_id=CHANNEL.id, supply_id=supply.id,
            channel_epoch=epochs[0], supply_epoch=epochs[1], failure=code, observe_time=now, dispatch_time=now,
        )  # fmt: skip
        return await self.stub.ReportOutcome(service_pb.ReportOutcomeRequest(outcome=outcome), timeout=TIMEOUT_S)

    async def events(self, subject: subject_pb2.Subject = SUPPLY) -> list[pb.HealthEvent]:
        """The history of a subject."""
        request = service_pb.ListHealthEventsRequest(subject=subject, page_size=1000)
        return list((await self.stub.ListHealthEvents(request, timeout=TIMEOUT_S)).events)

    async def set_state(
        self, state: pb.HealthState.ValueType, subject: subject_pb2.Subject = SUPPLY, reason: str = "x"
    ):
        """An operator's word."""
        request = service_pb.SetStateRequest(subject=subject, state=state, reason=reason)
        return (await self.stub.SetState(request, timeout=TIMEOUT_S)).subject


@pytest.fixture
async def wire(database_url: str) -> AsyncIterator[HealthWire]:
    """The context over the in-process channel; its tickers rest, time stands until it is moved."""
    world, clock = steered_world()
    context = build(Settings(database_url=database_url), None, world)
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    for _, add in context.registrations:
        server.add(add)
    await server.start()
    async with Channels(registry=registry, caller="routing") as channels:
        yield HealthWire(HealthServiceStub(channels.to("health")), clock)
    await server.close()
    await context.stop()


def seconds(value: float) -> Duration:
    """A duration."""
    made = Duration()
    made.FromMilliseconds(round(value * 1000))
    return made
