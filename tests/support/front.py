"""Replicas of edge, runs and cost_quote over one real database, before a routing that takes orders and ends none.

    async with front(pg_url, folder, replicas=2) as (one, two):
        async with one.visitor() as client: …

No ports: a visitor's transport is the ASGI application. Both replicas know the same admin key, `ADMIN_KEY`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from google.type.money_pb2 import Money

from libs.blobs.local import LocalBlobs
from libs.host.hosted import Context
from libs.host.world import real_world
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.telemetry.metrics import Metrics
from pointsman.capacity.v1.capacity_service_pb2_grpc import add_CapacityServiceServicer_to_server
from pointsman.health.v1.health_service_pb2_grpc import add_HealthServiceServicer_to_server
from pointsman.routing.v1 import routing_service_pb2, task_pb2, tenant_budget_pb2
from pointsman.routing.v1.catalog_service_pb2_grpc import add_CatalogServiceServicer_to_server
from pointsman.routing.v1.routing_service_pb2_grpc import add_RoutingServiceServicer_to_server
from services.cost_quote import compose as cost_quote_compose
from services.cost_quote.settings import Settings as CostQuoteSettings
from services.edge import compose as edge_compose
from services.edge.settings import Settings as EdgeSettings
from services.runs import compose as runs_compose
from services.runs.settings import Settings as RunsSettings
from tests.contract.edge.fake_peers import FakeCapacity, FakeCatalog, FakeHealth, FakeRouting

ADMIN_KEY = "the-operator's-own-words"


class OpenRouting(FakeRouting):
    """Takes every order and keeps it queued until it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.validated = 0
        self.refusal: BaseException | None = None
        self.estimate = routing_service_pb2.Estimate(worst_cost=Money(currency_code="CNY", units=1), max_attempts=1)
        self.open = asyncio.Event()
        """Orders are looked at while it is set."""
        self.open.set()

    async def SubmitTask(self, request: Any, context: Any) -> Any:
        """Keeps the Task under its request id; looking at an order alone keeps nothing."""
        if request.validate_only:
            self.validated += 1
            await self.open.wait()
            if self.refusal is not None:
                raise self.refusal
            return routing_service_pb2.SubmitTaskResponse(estimate=self.estimate)
        ended = task_pb2.TASK_STATE_CANCELLED if request.cancel_requested else task_pb2.TASK_STATE_QUEUED
        named = {"id": request.request_id, "run_id": request.run_id, "tenant": request.tenant}
        task = task_pb2.Task(**named, state=ended, revision=1)
        return routing_service_pb2.SubmitTaskResponse(task=self.tasks.setdefault(task.id, task))

    async def TenantBudget(self, request: Any, context: Any) -> Any:
        """No quota."""
        return tenant_budget_pb2.TenantBudgetResponse()

    async def PauseTasks(self, request: Any, context: Any) -> Any:
        """Held."""
        return routing_service_pb2.PauseTasksResponse()

    async def RaiseAlert(self, request: Any, context: Any) -> Any:
        """Heard."""
        return routing_service_pb2.RaiseAlertResponse()

    async def ListTasks(self, request: Any, context: Any) -> Any:
        """Those of the ids asked for."""
        found = [self.tasks[task_id] for task_id in request.task_ids if task_id in self.tasks]
        return routing_service_pb2.ListTasksResponse(tasks=found)

    async def CancelTask(self, request: Any, context: Any) -> Any:
        """Ends it."""
        task = self.tasks[request.task_id]
        task.state = task_pb2.TASK_STATE_CANCELLED
        task.revision += 1
        return routing_service_pb2.CancelTaskResponse(task=task)


@dataclass
class Replica:
    """One edge with its runs."""

    edge: edge_compose.EdgeContext
    routing: OpenRouting
    catalog: FakeCatalog
    channels: Channels
    metrics: Metrics = field(repr=False)

    def visitor(self, key: str = ADMIN_KEY, **headers: str) -> httpx2.AsyncClient:
        """A client with that key."""
        transport = httpx2.ASGITransport(app=self.edge.app, raise_app_exceptions=True)
        sent = {"authorization": f"Bearer {key}", **headers}
        return httpx2.AsyncClient(transport=transport, base_url="http://edge.test", headers=sent, timeout=60)


@asynccontextmanager
async def front(
    url: str, folder: Path, *, replicas: int = 1, routing: OpenRouting | None = None, **settings: Any
) -> AsyncIterator[list[Replica]]:
    """That many replicas over the database, at work. One routing serves all of them; each has its ledger."""
    routing, catalog = routing or OpenRouting(), FakeCatalog()
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(_replica(url, folder, routing, catalog, settings)) for _ in range(replicas)
        ]


@asynccontextmanager
async def _replica(
    url: str, folder: Path, routing: OpenRouting, catalog: FakeCatalog, settings: dict[str, Any]
) -> AsyncIterator[Replica]:
    registry, metrics, world = LoopbackRegistry(), Metrics(), real_world()
    channels = Channels(registry=registry, caller="edge")
    asked = EdgeSettings(
        database_url=url,
        blobs=str(folder / "blobs"),
        data_directory=str(folder),
        http_port=0,
        admin_key=ADMIN_KEY,
        **settings,
    )
    edge = edge_compose.build(asked, channels, world, blobs=LocalBlobs(folder / "blobs"), metrics=metrics)
    of_runs = RunsSettings(database_url=url, blobs_address=str(folder / "blobs"), data_directory=str(folder))
    runs: Context = runs_compose.build(of_runs, channels.for_caller("runs"), world)
    ledger: Context = cost_quote_compose.build(
        CostQuoteSettings(database_url=url), channels.for_caller("cost_quote"), world
    )
    server = RpcServer(registry=registry, metrics=metrics)
    server.add(lambda s: add_RoutingServiceServicer_to_server(routing, s))
    server.add(lambda s: add_CatalogServiceServicer_to_server(catalog, s))
    server.add(lambda s: add_HealthServiceServicer_to_server(FakeHealth(), s))
    server.add(lambda s: add_CapacityServiceServicer_to_server(FakeCapacity(), s))
    for _, add_to_server in (*edge.registrations, *runs.registrations, *ledger.registrations):
        server.add(add_to_server)
    await edge.migrate()
    await runs.migrate()
    await ledger.migrate()
    await server.start()
    await ledger.start()
    await runs.start()
    edge.admit_admin()
    try:
        yield Replica(edge, routing, catalog, channels, metrics)
    finally:
        await edge.stop()
        await runs.stop()
        await ledger.stop()
        await channels.close(0.0)
        await server.close(0.1)
