"""Customers, who order, insist and cancel, and an operator, all by the public stubs of a process of their own."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from grpc import aio

from libs.faults.wire import from_rpc_error
from libs.rpc.values import struct_from
from pointsman.common.v1.subject_pb2 import Subject, SubjectKind
from pointsman.routing.v1 import catalog_pb2, catalog_service_pb2
from pointsman.routing.v1.catalog_service_pb2_grpc import CatalogServiceStub
from pointsman.routing.v1.task_pb2 import PRIORITY_HIGH, PRIORITY_LOW, PRIORITY_UNSPECIFIED, TaskOptions
from pointsman.runs.v1 import runs_service_pb2
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceStub
from tests.simulation.cluster import EPOCH, VirtualClock
from tests.simulation.network import Doors, Process
from tests.simulation.offers import MODEL, SECONDS, Offers

TENANT = "studio"
INSIST_S = 1.5
PRIORITIES = (PRIORITY_UNSPECIFIED, PRIORITY_UNSPECIFIED, PRIORITY_HIGH, PRIORITY_LOW)
INSISTED = frozenset({"internal", "deadline_exceeded", "cancelled", "peer_unavailable", "revision_conflict"})


@dataclass(slots=True)
class People:
    """Everybody outside. `orders` are the ids of the Runs that were acknowledged, by idempotency key."""

    rng: random.Random
    process: Process
    clock: VirtualClock
    offers: Offers
    counts: Counter[str]
    orders: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    seen: dict[str, list[int]] = field(default_factory=dict)
    """Sequences as a customer's stream showed them."""
    _edition: int = 0
    runs: Any = field(init=False)
    _catalog: Any = field(init=False)

    def __post_init__(self) -> None:
        doors = Doors(self.process, "")
        self.runs = RunsServiceStub(doors.to("runs"))
        self._catalog = CatalogServiceStub(doors.to("routing"))

    async def declare(self) -> None:
        """Put the catalogue in force."""
        await self._apply(self.offers.catalog_text())

    async def reprice(self) -> None:
        """Put its next edition in force."""
        self._edition += 1
        await self._apply(self.offers.catalog_text(self._edition))

    async def _apply(self, text: str) -> None:
        request = catalog_service_pb2.ApplyRequest(catalog_yaml=text)
        await self.insist(lambda: self._catalog.Apply(request, timeout=self.timeout_s))

    async def switch(self, subject: str, on: bool) -> None:
        """An operator's word on a Channel or Supply."""
        kind = SubjectKind.SUBJECT_KIND_SUPPLY if "/" in subject else SubjectKind.SUBJECT_KIND_CHANNEL
        state = catalog_pb2.ADMIN_STATE_ENABLED if on else catalog_pb2.ADMIN_STATE_DISABLED
        request = catalog_service_pb2.SetAdminStateRequest(
            subject=Subject(kind=kind, id=subject), state=state, reason="an operator"
        )
        await self.insist(lambda: self._catalog.SetAdminState(request, timeout=self.timeout_s))

    async def order(self, number: int, after_s: float) -> None:
        """One customer: order, look on, perhaps cancel."""
        await asyncio.sleep(after_s)
        rng, key = self.rng, f"order-{number}"
        options = TaskOptions(priority=rng.choice(PRIORITIES))
        if rng.random() < 0.1:
            options.deadline_time.FromDatetime(
                EPOCH + timedelta(seconds=self._now() + rng.uniform(20.0, 200.0) * self.offers.stretch)
            )
            self.counts["with a deadline"] += 1
        request = runs_service_pb2.CreateRunRequest(
            tenant=TENANT, model=MODEL, input=struct_from({"prompt": f"a boat, {number}", "duration_s": SECONDS}),
            options=options, idempotency_key=key, fingerprint=key,
        )  # fmt: skip
        reply = await self.insist(lambda: self.runs.CreateRun(request, timeout=self.timeout_s))
        if reply is None:
            self.refused.append(key)
            return
        run_id = self.orders[key] = reply.run.id
        if rng.random() < 0.15:
            self.counts["cancelled"] += 1
            pause_s = rng.choice((0.0, rng.uniform(0.0, 3.0), rng.uniform(0.0, 60.0)))
            await asyncio.sleep(pause_s * self.offers.stretch)
            asked = runs_service_pb2.CancelRunRequest(run_id=run_id, tenant=TENANT)
            await self.insist(lambda: self.runs.CancelRun(asked, timeout=self.timeout_s))
        await self.look_on(run_id)

    async def look_on(self, run_id: str) -> None:
        """Follow the events by a stream that breaks and is taken up where it broke."""
        seen = self.seen.setdefault(run_id, [])
        while True:
            after = seen[-1] if seen else 0
            request = runs_service_pb2.StreamRunEventsRequest(
                run_id=run_id, tenant=TENANT, after_sequence=after, follow=True
            )
            try:
                async for reply in self.runs.StreamRunEvents(request, timeout=120.0 * self.offers.stretch):
                    seen += [event.sequence for event in reply.events]
                return
            except aio.AioRpcError:
                self.counts["streams taken up"] += 1
                await asyncio.sleep(INSIST_S)

    async def insist(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Until it is answered; None when the answer is a refusal that will stand."""
        while True:
            try:
                return await call()
            except aio.AioRpcError as error:
                fault = from_rpc_error(error)
                if not fault.retryable and fault.code not in INSISTED:
                    self.counts[f"answered {fault.code}"] += 1
                    return None
                self.counts["insisted"] += 1
            await asyncio.sleep(INSIST_S)

    @property
    def timeout_s(self) -> float:
        """How long an answer is waited for."""
        return 12.0 * self.offers.stretch

    def _now(self) -> float:
        return self.clock.monotonic()
