"""Puts the context together: the only module that knows both its inside and its machines."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from libs.host.hosted import ComposedContext, Step
from libs.host.ticker import Ticker
from libs.kernel.world import World
from libs.store.database import Database
from libs.store.engine import Bounds
from libs.store.migrations import migrate
from pointsman.capacity.v1.capacity_service_pb2_grpc import add_CapacityServiceServicer_to_server
from services.capacity.app.apply_limits import ApplyLimits
from services.capacity.app.freed import Freed
from services.capacity.app.get_capacity import GetCapacity
from services.capacity.app.release import Release
from services.capacity.app.renew import Renew
from services.capacity.app.reserve import Reserve
from services.capacity.app.sweep import Sweep
from services.capacity.app.watch import WatchCapacity
from services.capacity.ports import CapacityStore
from services.capacity.servicer import CapacityServicer, UseCases
from services.capacity.settings import Settings
from services.capacity.store.memory import MemoryCapacityStore
from services.capacity.store.postgres import PostgresCapacityStore

SCHEMA = "capacity"
VERSIONS = Path(__file__).parent / "store" / "migrations" / "versions"
SERVICE = "pointsman.capacity.v1.CapacityService"


def build(settings: Settings, channels: Any, world: World) -> ComposedContext:
    """The context, not yet at work. It calls no other context, so it takes no channel."""
    store: CapacityStore = MemoryCapacityStore(world.clock)
    migration = None
    if settings.database_url != "memory:":
        bounds = Bounds(pool_size=settings.pool_size)
        store = PostgresCapacityStore(Database(settings.database_url, schema=SCHEMA, bounds=bounds))

        async def migration() -> None:
            await migrate(settings.database_url, schema=SCHEMA, versions=VERSIONS)

    if settings.redis_url:
        # Its client takes the OpenTelemetry SDK along wherever that is installed: nobody loads either for nothing.
        from services.capacity.store.valkey import ValkeyCapacityStore, connect

        client = connect(settings.redis_url, settings.redis_timeout_s)
        store = ValkeyCapacityStore(client, store, timedelta(seconds=settings.ttl_max_s))
    return assemble(store, settings, world, migration)


def assemble(store: CapacityStore, settings: Settings, world: World, migration: Step | None = None) -> ComposedContext:
    """The context over a store of the caller's choice."""
    freed = Freed()
    release = Release(store, freed)
    servicer = CapacityServicer(
        UseCases(
            reserve=Reserve(store),
            renew=Renew(store),
            release=release,
            get_capacity=GetCapacity(store),
            watch=WatchCapacity(store, world.clock, freed, settings.poll_s),
            apply=ApplyLimits(store, freed),
        )
    )
    return ComposedContext(
        SCHEMA,
        ((SERVICE, lambda server: add_CapacityServiceServicer_to_server(servicer, server)),),
        migration=migration,
        tickers=(Ticker("capacity.sweep", Sweep(store, freed), world=world, interval_s=settings.sweep_s),),
        finish=(release.drain, store.close),
    )
