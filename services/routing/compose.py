"""Puts the context together: the only module that knows both its inside and its machines."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from libs.blobs.opening import open_blobs
from libs.host.hosted import ComposedContext, Registration
from libs.host.ticker import Ticker
from libs.kernel.world import World
from libs.store.database import Database
from libs.store.engine import Bounds
from libs.store.gathering import Gathering
from libs.store.migrations import migrate
from pointsman.routing.v1.catalog_service_pb2_grpc import add_CatalogServiceServicer_to_server
from pointsman.routing.v1.routing_service_pb2_grpc import add_RoutingServiceServicer_to_server
from services.routing.app.calls.afterwards import Afterwards
from services.routing.app.calls.call_desk import CallDesk, Memory
from services.routing.app.calls.call_holds import CallHolds
from services.routing.app.calls.call_turn import seat_all
from services.routing.app.calls.end_orphans import EndOrphans, forget_calls
from services.routing.app.calls.looking import Looking
from services.routing.app.calls.settle_call import price_all
from services.routing.app.calls.watchdog import Watch
from services.routing.app.catalog_desk import CatalogDesk, CatalogView
from services.routing.app.check_budgets import CheckBudgets
from services.routing.app.check_histories import CheckHistories
from services.routing.app.check_leases import CheckLeases
from services.routing.app.check_standing import CheckStanding
from services.routing.app.desk import Bell, Desk, Errands, Store
from services.routing.app.follow_health import HealthFollower
from services.routing.app.funds import Funds
from services.routing.app.hear_late import hear_late
from services.routing.app.keep_leases import keep_leases
from services.routing.app.keep_pulse import KeepPulse
from services.routing.app.perform_step import perform_step
from services.routing.app.push_catalog import CatalogPush
from services.routing.app.restores import KeepLife
from services.routing.app.sending import Sending
from services.routing.app.settle_holds import SettleHolds
from services.routing.app.tell_outcomes import tell_outcomes
from services.routing.app.turn import place_all
from services.routing.app.usher import Usher
from services.routing.app.verify_supply import VerifySupply
from services.routing.app.work_queue import WorkQueue
from services.routing.domain.silence import PULSE_S
from services.routing.peers.calls import RemoteCalls
from services.routing.peers.capacity import HOLDER_OF_CALLS, RemoteCapacity
from services.routing.peers.health import RemoteHealth
from services.routing.peers.ledger import RemoteLedger
from services.routing.peers.provider import RemoteProvider
from services.routing.peers.quotes import RemoteQuotes
from services.routing.ports import CatalogStore, Lane
from services.routing.ports.verification import VerificationStore
from services.routing.servicer.catalog import CatalogServicer
from services.routing.servicer.routing import RoutingServicer
from services.routing.settings import Settings
from services.routing.store.calls_memory import MemoryCalls
from services.routing.store.calls_postgres import PostgresCalls
from services.routing.store.catalog_memory import MemoryCatalogStore
from services.routing.store.catalog_postgres import PostgresCatalogStore
from services.routing.store.life_file import LifeFile, NoMark
from services.routing.store.specimens import BlobSpecimens
from services.routing.store.tasks_memory import MemoryTasks
from services.routing.store.tasks_postgres import PostgresTasks
from services.routing.store.verifications_memory import MemoryVerifications
from services.routing.store.verifications_postgres import PostgresVerifications

SCHEMA = "routing"
VERSIONS = Path(__file__).parent / "store" / "migrations" / "versions"
ROUTING_SERVICE = "pointsman.routing.v1.RoutingService"
CATALOG_SERVICE = "pointsman.routing.v1.CatalogService"
PUSH_INTERVAL_S = 1.0
LATE_INTERVAL_S = 15.0
FORGET_INTERVAL_S = 60.0
HOLDS_INTERVAL_S = 10.0
BUDGETS_INTERVAL_S = 60.0
BUDGETS_SHARE = 0.05
LIFE_INTERVAL_S = 5.0
PRICING_S = 1.0
"""The answer of a call waits for its price no longer than this."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Where this context keeps what must outlive it."""

    tasks: Store
    catalog: CatalogStore
    calls: Any = None
    """`CallStore` and `AnswerStore`; None = in memory."""
    verifications: VerificationStore = field(default_factory=MemoryVerifications)
    migration: Callable[[], Awaitable[object]] | None = None
    close: tuple[Callable[[], Awaitable[object]], ...] = ()


def build(settings: Settings, channels: Any, world: World) -> ComposedContext:
    """The context, not yet at work. It calls health, capacity, cost_quote and provider_adapter."""
    return assemble(_open(settings), settings, channels, world)


def assemble(stores: Stores, settings: Settings, channels: Any, world: World) -> ComposedContext:
    """The context over stores of the caller's choice."""
    view = CatalogView(stores.catalog, world.clock)
    desk = _desk(settings, channels, world, stores, view)
    calls = _call_desk(desk, channels, stores)
    queues = (
        WorkQueue(desk, Lane.DISPATCH, settings.dispatch_concurrency, perform_step, aside=lambda: desk.sending.total),
        WorkQueue(desk, Lane.FOLLOW, settings.follow_concurrency, perform_step, settings.follow_per_s),
    )
    push = CatalogPush(view, desk.health, desk.capacity, desk.quotes, world.clock)
    catalog_desk = CatalogDesk(
        stores.catalog,
        view,
        desk.provider,
        world.clock,
        tell=push.tick,
        longest_lease_s=settings.capacity_ttl_max_s,
        settle_s=settings.reconcile_settle_s,
        verifications=stores.verifications,
    )
    specimens = BlobSpecimens(open_blobs(settings.blobs_address))
    verify = VerifySupply(desk, stores.catalog, stores.verifications, specimens, calls)
    mark = LifeFile(Path(settings.life_file)) if settings.life_file else NoMark()
    life = KeepLife(desk, mark, settings.restored_backup_at)
    beats = Ticker("routing.life", life.tick, world=desk.world, interval_s=LIFE_INTERVAL_S)
    # Never before a second is over, which is what it counts.
    pulse = Ticker("routing.pulse", KeepPulse(desk).tick, world=world, interval_s=PULSE_S * 1.02, jitter=0.0)
    tickers = _tickers(desk, calls, queues, push, catalog_desk)

    async def drain() -> None:
        await asyncio.gather(*(queue.drain() for queue in queues))
        await desk.errands.done()
        await calls.holds.settle_shared(everything=True)

    return ComposedContext(
        SCHEMA,
        _registrations(desk, calls, catalog_desk, verify),
        migration=stores.migration,
        begin=(life.begin,),
        tickers=(beats, pulse, *tickers),
        finish=(drain, *stores.close),
    )


def _open(settings: Settings) -> Stores:
    if settings.database_url == "memory:":
        return Stores(MemoryTasks(), MemoryCatalogStore())
    database = Database(settings.database_url, schema=SCHEMA, bounds=Bounds(pool_size=settings.pool_size))
    tasks, calls = PostgresTasks(database), PostgresCalls(database)
    return Stores(
        tasks,
        PostgresCatalogStore(database),
        calls,
        PostgresVerifications(database),
        partial(migrate, settings.database_url, schema=SCHEMA, versions=VERSIONS),
        (calls.close, tasks.close, database.close),
    )


def _desk(settings: Settings, channels: Any, world: World, stores: Stores, view: CatalogView) -> Desk:
    timeout_s = settings.peer_timeout_s
    return Desk(
        store=stores.tasks,
        catalog=view,
        health=RemoteHealth(channels.to("health"), timeout_s),
        capacity=RemoteCapacity(channels.to("capacity"), timeout_s, settings.capacity_ttl_s, world.clock),
        quotes=RemoteQuotes(channels.to("cost_quote"), timeout_s),
        provider=RemoteProvider(channels.to("provider_adapter"), timeout_s, settings.delivery_s, world.clock),
        world=world,
        settings=settings,
        worker=world.ids.ulid(),
        bell=Bell(),
        turn=Gathering(place_all, lambda ask: ask[1].id),
        usher=Usher(stores.tasks, world.clock, settings.waiting_look_s),
        errands=Errands(),
        sending=Sending(settings.submissions_per_channel),
        funds=Funds(RemoteLedger(channels.to("cost_quote"), timeout_s)),
    )


def _call_desk(desk: Desk, channels: Any, stores: Stores) -> CallDesk:
    settings, world, timeout_s = desk.settings, desk.world, desk.settings.peer_timeout_s
    kept = stores.calls if stores.calls is not None else MemoryCalls()
    health = RemoteHealth(channels.to("health"), timeout_s)
    capacity = RemoteCapacity(channels.to("capacity"), timeout_s, settings.capacity_ttl_s, world.clock, HOLDER_OF_CALLS)
    memory = Memory()
    calls = CallDesk(
        store=kept,
        answers=kept,
        alerts=desk.store,
        catalog=desk.catalog,
        health=health,
        capacity=capacity,
        quotes=RemoteQuotes(channels.to("cost_quote"), timeout_s, PRICING_S),
        provider=RemoteCalls(channels.to("provider_adapter")),
        world=world,
        settings=settings,
        errands=desk.errands,
        afterwards=Afterwards(desk.errands, world.clock, settings.settle_window_s, lambda: memory.room.wanted),
        looking=Looking(health, capacity, settings.look_fresh_s),
        turn=Gathering(seat_all, id),
        prices=Gathering(lambda used: price_all(calls, used), lambda used: used.key),
        watch=Watch(world.clock),
        funds=desk.funds,
        holds=CallHolds(desk.funds, world, bool(settings.hold_every_call)),
        memory=memory,
    )
    return calls


def _tickers(
    desk: Desk,
    calls: CallDesk,
    queues: tuple[WorkQueue, WorkQueue],
    push: CatalogPush,
    catalog_desk: CatalogDesk,
) -> tuple[Ticker, ...]:
    settings, world = desk.settings, desk.world

    async def prolong() -> None:
        await asyncio.gather(*(queue.prolong() for queue in queues))

    async def tell_catalog() -> None:
        await push.tick()

    scans = tuple(
        Ticker(f"routing.{lane}", queue.scan, world=world, interval_s=settings.scan_interval_s, backoff_max_s=1.0)
        for lane, queue in zip(("dispatch", "follow"), queues, strict=True)
    )
    pushing = Ticker("routing.catalog", tell_catalog, world=world, interval_s=PUSH_INTERVAL_S)
    look_s = settings.waiting_look_s
    usher = Ticker("routing.usher", desk.usher.tick, world=world, interval_s=look_s, jitter=0.05, backoff_max_s=1.0)
    if settings.hints:
        desk.bell.listeners = tuple(scan.wake for scan in scans)
        desk.usher.on_hint, desk.usher.on_woken = usher.wake, scans[0].wake
        catalog_desk.changed.append(pushing.wake)
    health = HealthFollower(desk)
    orphans = EndOrphans(calls)
    renew_s = settings.renew_interval_s
    return (  # stopped from the last to the first: claims are kept until nothing but the steps in hand is left
        Ticker("routing.claims", prolong, world=world, interval_s=settings.heartbeat_s, backoff_max_s=1.0),
        pushing,
        # No longer pause after a failure: two in a row must still leave time for a third before slots lapse.
        Ticker("routing.leases", partial(keep_leases, desk), world=world, interval_s=renew_s, backoff_max_s=renew_s),
        Ticker("routing.health", health.tick, world=world, interval_s=settings.health_poll_s * 0.9, backoff_max_s=2.0),
        Ticker("routing.outcomes", partial(tell_outcomes, desk), world=world, interval_s=settings.report_interval_s),
        Ticker("routing.late", partial(hear_late, desk), world=world, interval_s=LATE_INTERVAL_S),
        *_checks(desk),
        Ticker("routing.holds", SettleHolds(desk, calls), world=world, interval_s=HOLDS_INTERVAL_S),
        Ticker("routing.orphans", orphans, world=world, interval_s=settings.orphan_interval_s),
        Ticker("routing.old_calls", partial(forget_calls, calls), world=world, interval_s=FORGET_INTERVAL_S),
        usher,
        *scans,
    )


def _checks(desk: Desk) -> tuple[Ticker, ...]:
    """The running proofs. None leads: any number of processes may check at once."""
    world, settings = desk.world, desk.settings
    return (
        Ticker("routing.standing", CheckStanding(desk), world=world, interval_s=settings.check_interval_s),
        Ticker("routing.histories", CheckHistories(desk), world=world, interval_s=settings.check_interval_s),
        Ticker(
            "routing.budgets", CheckBudgets(desk), world=world, interval_s=BUDGETS_INTERVAL_S, most_share=BUDGETS_SHARE
        ),
        Ticker("routing.ledger", CheckLeases(desk), world=world, interval_s=settings.capacity_ttl_s),
    )


def _registrations(
    desk: Desk, calls: CallDesk, catalog_desk: CatalogDesk, verify: VerifySupply
) -> tuple[Registration, ...]:
    routing, catalog = RoutingServicer(desk, calls), CatalogServicer(catalog_desk, verify)
    return (
        (ROUTING_SERVICE, lambda server: add_RoutingServiceServicer_to_server(routing, server)),
        (CATALOG_SERVICE, lambda server: add_CatalogServiceServicer_to_server(catalog, server)),
    )
