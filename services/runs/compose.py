"""Puts the context together: the only module that knows both its inside and its machines."""

from pathlib import Path
from typing import Any

from libs.host.hosted import ComposedContext
from libs.host.ticker import Ticker
from libs.kernel.world import World
from libs.store.database import Database
from libs.store.migrations import migrate
from pointsman.runs.v1.runs_service_pb2_grpc import add_RunsServiceServicer_to_server
from services.runs.app.advance_runs import Advance
from services.runs.app.hub import Hub
from services.runs.peers.routing import RoutingPeer
from services.runs.ports import Runs
from services.runs.servicer import RunsServicer
from services.runs.settings import Settings
from services.runs.store.memory import MemoryRuns
from services.runs.store.postgres import PostgresRuns

SCHEMA = "runs"
VERSIONS = Path(__file__).parent / "store" / "migrations" / "versions"
SERVICE = "pointsman.runs.v1.RunsService"


def build(settings: Settings, channels: Any, world: World) -> ComposedContext:
    """The context, not yet at work. It calls routing."""
    if settings.database_url == "memory:":
        return assemble(MemoryRuns(world.ids), settings, channels, world)
    database = Database(settings.database_url, schema=SCHEMA)
    context = assemble(PostgresRuns(database, world.ids), settings, channels, world)
    context.migration = lambda: migrate(settings.database_url, schema=SCHEMA, versions=VERSIONS)
    context.finish = (database.close,)
    return context


def assemble(runs: Runs, settings: Settings, channels: Any, world: World) -> ComposedContext:
    """The context over a store of the caller's choice."""
    routing = RoutingPeer(channels.to("routing"))
    hub = Hub(runs, hints=settings.hints)
    advance = Advance(runs, routing, hub, world)
    submit = Ticker("runs.submit", advance.submit_pending, world=world, interval_s=settings.submit_interval_s)
    follow = Ticker("runs.follow", advance.follow_running, world=world, interval_s=settings.follow_interval_s)
    watch = Ticker("runs.watch", hub.poll, world=world, interval_s=settings.watch_interval_s)

    def created() -> None:
        if settings.hints:
            submit.wake()

    def cancelled() -> None:
        if settings.hints:
            submit.wake()
            follow.wake()

    servicer = RunsServicer(runs, routing, hub, world, created=created, cancelled=cancelled)
    return ComposedContext(
        SCHEMA,
        ((SERVICE, lambda server: add_RunsServiceServicer_to_server(servicer, server)),),
        tickers=(submit, follow, watch),
    )
