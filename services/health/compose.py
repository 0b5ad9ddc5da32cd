"""Puts the context together: the only module that knows both its inside and its machines."""

from pathlib import Path
from typing import Any

from libs.host.hosted import ComposedContext, Step
from libs.host.ticker import Ticker
from libs.kernel.world import World
from libs.store.database import Database
from libs.store.engine import Bounds
from libs.store.migrations import migrate
from pointsman.health.v1.health_service_pb2_grpc import add_HealthServiceServicer_to_server
from services.health.app.apply_targets import ApplyTargets
from services.health.app.changes import Changes
from services.health.app.check_history import CheckHistory
from services.health.app.explain_state import ExplainState
from services.health.app.forget import ForgetOutcomes
from services.health.app.list_events import ListEvents
from services.health.app.reconcile import Reconcile
from services.health.app.report_outcome import ReportOutcome
from services.health.app.set_state import SetState
from services.health.app.snapshot import GetSnapshot
from services.health.app.watch import WatchSnapshot
from services.health.ports import HealthStore
from services.health.servicer import HealthServicer, UseCases
from services.health.settings import Settings
from services.health.store.memory import MemoryHealthStore
from services.health.store.postgres import PostgresHealthStore

SCHEMA = "health"
VERSIONS = Path(__file__).parent / "store" / "migrations" / "versions"
SERVICE = "pointsman.health.v1.HealthService"
FORGET_S = 600.0


def build(settings: Settings, channels: Any, world: World) -> ComposedContext:
    """The context, not yet at work. It calls no other context, so it takes no channel."""
    store: HealthStore = MemoryHealthStore()
    migration = None
    if settings.database_url != "memory:":
        bounds = Bounds(pool_size=settings.pool_size)
        store = PostgresHealthStore(Database(settings.database_url, schema=SCHEMA, bounds=bounds))

        async def migration() -> None:
            await migrate(settings.database_url, schema=SCHEMA, versions=VERSIONS)

    return assemble(store, settings, world, migration)


def assemble(store: HealthStore, settings: Settings, world: World, migration: Step | None = None) -> ComposedContext:
    """The context over a store of the caller's choice."""
    clock, changes, history = world.clock, Changes(), CheckHistory(store)
    reconcile = Reconcile(store, clock, changes)
    snapshot = GetSnapshot(store, clock, reconcile)
    servicer = HealthServicer(
        UseCases(
            snapshot=snapshot,
            watch=WatchSnapshot(snapshot, clock, changes, settings.poll_s),
            report=ReportOutcome(store, clock, changes),
            events=ListEvents(store),
            set_state=SetState(store, clock, changes),
            apply=ApplyTargets(store, clock, changes),
            explain=ExplainState(store),
            history=history,
        )
    )
    forget = ForgetOutcomes(store, clock, settings.keep_outcomes_s)
    return ComposedContext(
        SCHEMA,
        ((SERVICE, lambda server: add_HealthServiceServicer_to_server(servicer, server)),),
        migration=migration,
        tickers=(
            Ticker("health.reconcile", reconcile, world=world, interval_s=settings.tick_s),
            Ticker("health.history", history, world=world, interval_s=settings.check_s),
            Ticker("health.forget", forget, world=world, interval_s=FORGET_S),
        ),
        finish=(store.close,),
    )
