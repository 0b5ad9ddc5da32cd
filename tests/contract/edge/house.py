"""The edge in a test: the real one, over fake contexts and a real ledger, with a steered clock and a client per key."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from libs.blobs.local import LocalBlobs
from libs.fetching.fetcher import Fetcher
from libs.kernel.world import World
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.telemetry.metrics import Metrics
from pointsman.capacity.v1.capacity_service_pb2_grpc import add_CapacityServiceServicer_to_server
from pointsman.health.v1.health_service_pb2_grpc import add_HealthServiceServicer_to_server
from pointsman.routing.v1.catalog_service_pb2_grpc import add_CatalogServiceServicer_to_server
from pointsman.routing.v1.routing_service_pb2_grpc import add_RoutingServiceServicer_to_server
from pointsman.runs.v1.callback_service_pb2_grpc import add_CallbackServiceServicer_to_server
from pointsman.runs.v1.dead_letter_service_pb2_grpc import add_DeadLetterServiceServicer_to_server
from pointsman.runs.v1.review_service_pb2_grpc import add_ReviewServiceServicer_to_server
from pointsman.runs.v1.runs_service_pb2_grpc import add_RunsServiceServicer_to_server
from services.cost_quote.compose import assemble as assemble_cost_quote
from services.cost_quote.store.memory import MemoryPriceBooks
from services.edge.compose import EdgeContext, build
from services.edge.settings import Settings
from tests.contract.cost_quote.ledgers import NotingBudgets
from tests.contract.edge.fake_callbacks import FakeCallbacks
from tests.contract.edge.fake_peers import FakeCapacity, FakeCatalog, FakeHealth, FakeRouting
from tests.contract.edge.fake_runs import FakeDeadLetters, FakeReviews, FakeRuns
from tests.support.worlds import SteeredClock, steered_world

ADMIN_KEY = "the-operator's-own-words"


@dataclass
class EdgeHouse:
    """Everything that a test may touch."""

    context: EdgeContext
    world: World
    clock: SteeredClock
    blobs: LocalBlobs
    metrics: Metrics
    channels: Channels
    runs: FakeRuns = field(default_factory=FakeRuns)
    routing: FakeRouting = field(default_factory=FakeRouting)
    catalog: FakeCatalog = field(default_factory=FakeCatalog)
    health: FakeHealth = field(default_factory=FakeHealth)
    capacity: FakeCapacity = field(default_factory=FakeCapacity)
    reviews: FakeReviews = field(default_factory=FakeReviews)
    callbacks: FakeCallbacks = field(init=False)
    budgets: NotingBudgets = field(init=False)

    def __post_init__(self) -> None:
        self.callbacks = FakeCallbacks(self.runs)
        self.budgets = NotingBudgets(self.clock)

    def client(self, key: str = "", **headers: str) -> httpx2.AsyncClient:
        """A client with that key; its transport is the ASGI application itself."""
        if key:
            headers["authorization"] = f"Bearer {key}"
        transport = httpx2.ASGITransport(app=self.context.app, raise_app_exceptions=True)
        return httpx2.AsyncClient(transport=transport, base_url="http://edge.test", headers=headers)

    @property
    def admin(self) -> httpx2.AsyncClient:
        """The operator's client."""
        return self.client(ADMIN_KEY)

    async def key(self, tenant: str = "studio", *scopes: str, **more: Any) -> tuple[str, str]:
        """(id, key) of a new key; scope `runs` where none is named."""
        body = {"tenant": tenant, "scopes": list(scopes) or ["runs"], **more}
        made = await self.admin.post("/v1/operator/keys", json=body)
        assert made.status_code == 201, made.text
        return made.json()["id"], made.json()["key"]

    async def user(self, tenant: str = "studio", *scopes: str) -> httpx2.AsyncClient:
        """A client of that tenant."""
        return self.client((await self.key(tenant, *scopes))[1])


@asynccontextmanager
async def edge_house(folder: Path, fetcher: Fetcher | None = None, **settings: Any) -> AsyncIterator[EdgeHouse]:
    """The edge over fakes, serving but without a port; its store is in memory unless said otherwise."""
    world, clock = steered_world()
    registry = LoopbackRegistry()
    channels = Channels(registry=registry, caller="edge")
    blobs, metrics = LocalBlobs(folder / "blobs"), Metrics()
    given = {"database_url": "memory:", "admin_key": ADMIN_KEY, **settings}
    asked = Settings(blobs=str(folder / "blobs"), data_directory=str(folder), http_port=0, **given)
    context = build(asked, channels, world, blobs=blobs, metrics=metrics, fetcher=fetcher)
    house = EdgeHouse(context, world, clock, blobs, metrics, channels)
    server = RpcServer(registry=registry, metrics=metrics)
    server.add(lambda s: add_RunsServiceServicer_to_server(house.runs, s))
    server.add(lambda s: add_ReviewServiceServicer_to_server(house.reviews, s))
    server.add(lambda s: add_DeadLetterServiceServicer_to_server(FakeDeadLetters(), s))
    server.add(lambda s: add_CallbackServiceServicer_to_server(house.callbacks, s))
    server.add(lambda s: add_RoutingServiceServicer_to_server(house.routing, s))
    server.add(lambda s: add_CatalogServiceServicer_to_server(house.catalog, s))
    server.add(lambda s: add_HealthServiceServicer_to_server(house.health, s))
    server.add(lambda s: add_CapacityServiceServicer_to_server(house.capacity, s))
    ledger = assemble_cost_quote(MemoryPriceBooks(), clock, house.budgets)
    for _, add_to_server in (*context.registrations, *ledger.registrations):
        server.add(add_to_server)
    await context.migrate()
    await server.start()
    context.admit_admin()
    try:
        yield house
    finally:
        await context.stop()
        await channels.close(0.0)
        await server.close(0.1)
