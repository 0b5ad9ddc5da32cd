"""Puts the context together: the only module that knows both its inside and its machines."""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from libs.blobs.opening import open_blobs
from libs.fetching.fetcher import Bounds, Fetcher, rules_of
from libs.host.hosted import ComposedContext
from libs.host.ticker import Ticker
from libs.kernel.world import World
from libs.store.database import Database
from libs.store.migrations import migrate
from libs.store.sealing import Seal, file_key
from libs.telemetry.metrics import PROCESS
from pointsman.runs.v1.callback_service_pb2_grpc import add_CallbackServiceServicer_to_server
from pointsman.runs.v1.dead_letter_service_pb2_grpc import add_DeadLetterServiceServicer_to_server
from pointsman.runs.v1.review_service_pb2_grpc import add_ReviewServiceServicer_to_server
from pointsman.runs.v1.runs_service_pb2_grpc import add_RunsServiceServicer_to_server
from services.runs.app.advance_runs import Advance
from services.runs.app.ask_again import AskAgain
from services.runs.app.check_standing import Standing
from services.runs.app.command_run import Desk
from services.runs.app.examine_artifacts import Inspector
from services.runs.app.hands import Hands
from services.runs.app.hub import Hub
from services.runs.app.measure_levels import Measure
from services.runs.app.plans import Plans
from services.runs.app.prune_history import prune_history
from services.runs.app.recording import Recorder
from services.runs.app.review_desk import ReviewDesk
from services.runs.app.send_callbacks import SendCallbacks
from services.runs.app.telling import Telling
from services.runs.peers.alerts import AlertsPeer
from services.runs.peers.budgets import BudgetsPeer
from services.runs.peers.examiner import BlobExaminer
from services.runs.peers.receivers import HttpReceivers
from services.runs.peers.routing import RoutingPeer
from services.runs.ports import Callbacks, Desks, Examiner, Random, Receivers, Routing, Runs, WebhookSecrets
from services.runs.servicer.callbacks import CallbackServicer
from services.runs.servicer.desks import DeadLetterServicer, ReviewServicer
from services.runs.servicer.runs import RunsServicer, Wakes
from services.runs.settings import Settings
from services.runs.store.memory import MemoryRuns
from services.runs.store.memory_callbacks import MemoryCallbacks, MemorySecrets
from services.runs.store.postgres import PostgresRuns
from services.runs.store.postgres_callbacks import PostgresCallbacks, PostgresSecrets
from services.runs.store.postgres_desks import PostgresDesks

SCHEMA = "runs"
VERSIONS = Path(__file__).parent / "store" / "migrations" / "versions"
RUNS = "pointsman.runs.v1.RunsService"
REVIEWS = "pointsman.runs.v1.ReviewService"
DEAD_LETTERS = "pointsman.runs.v1.DeadLetterService"
CALLBACKS = "pointsman.runs.v1.CallbackService"
TELL_INTERVAL_S = 1.0
SENDING = Bounds(connect_s=5.0, total_s=15.0, connections=64)


@dataclass(frozen=True, slots=True)
class Outbox:
    """What it takes to tell ends of Runs to the URLs that they name."""

    callbacks: Callbacks
    secrets: WebhookSecrets
    receivers: Receivers
    random: Random


def build(settings: Settings, channels: Any, world: World) -> ComposedContext:
    """The context, not yet at work. It calls routing and cost_quote."""
    receivers = HttpReceivers(Fetcher(rules_of(settings.allow_private_urls), bounds=SENDING))
    examiner = BlobExaminer(open_blobs(settings.blobs_address), channels.to("routing"), world.ids)
    if settings.database_url == "memory:":
        memory = MemoryRuns(world.ids)
        outbox = Outbox(MemoryCallbacks(memory), MemorySecrets(), receivers, os.urandom)
        context = assemble(memory, memory, examiner, settings, channels, world, outbox)
        context.finish = (*context.finish, receivers.close)
        return context
    database = Database(settings.database_url, schema=SCHEMA)
    runs, desks = PostgresRuns(database, world.ids), PostgresDesks(database)
    seal = Seal((lambda: settings.secrets_key) if settings.secrets_key else file_key(Path(settings.data_directory)))
    outbox = Outbox(PostgresCallbacks(database), PostgresSecrets(database, seal), receivers, os.urandom)
    context = assemble(runs, desks, examiner, settings, channels, world, outbox)
    context.migration = lambda: migrate(settings.database_url, schema=SCHEMA, versions=VERSIONS)
    context.finish = (*context.finish, receivers.close, database.close)
    return context


def assemble(
    runs: Runs,
    desks: Desks,
    examiner: Examiner,
    settings: Settings,
    channels: Any,
    world: World,
    outbox: Outbox | None = None,
) -> ComposedContext:
    """The context over stores of the caller's choice. Without an outbox nothing is sent to callback URLs."""
    routing, budgets = RoutingPeer(channels.to("routing")), BudgetsPeer(channels.to("cost_quote"))
    hub, alerts = Hub(runs, hints=settings.hints), Telling(AlertsPeer(channels.to("routing")))
    plans, recorder = Plans(), Recorder(runs, hub, world, alerts)
    measure = Measure(runs, alerts, world, PROCESS)
    hands = Hands(runs, routing, budgets, Inspector(examiner), alerts, world)
    advance = Advance(runs, routing, hands, plans, recorder, world)
    submit = Ticker("runs.submit", advance.submit_pending, world=world, interval_s=settings.submit_interval_s)
    follow = Ticker("runs.follow", advance.follow_running, world=world, interval_s=settings.follow_interval_s)
    carry = Ticker("runs.carry", advance.carry_productions, world=world, interval_s=settings.follow_interval_s)
    look = AskAgain(runs, budgets, recorder, world).look
    room = Ticker("runs.room", look, world=world, interval_s=settings.room_interval_s)
    watch = Ticker("runs.watch", hub.poll, world=world, interval_s=settings.watch_interval_s)

    def created() -> None:
        if settings.hints:
            submit.wake()
            carry.wake()

    def changed() -> None:
        if settings.hints:
            submit.wake()
            follow.wake()
            carry.wake()

    desk = Desk(runs, routing, recorder, world, budgets)
    servicer = RunsServicer(desk, plans, hub, Wakes(created, changed), measure)
    people = ReviewDesk(desk, desks, plans, budgets)
    reviews, letters = ReviewServicer(people, changed), DeadLetterServicer(people)
    context = ComposedContext(
        SCHEMA,
        (
            (RUNS, lambda server: add_RunsServiceServicer_to_server(servicer, server)),
            (REVIEWS, lambda server: add_ReviewServiceServicer_to_server(reviews, server)),
            (DEAD_LETTERS, lambda server: add_DeadLetterServiceServicer_to_server(letters, server)),
        ),
        tickers=(submit, follow, carry, room, watch, *_keeping(runs, routing, alerts, plans, measure, settings, world)),
    )
    if outbox is not None:
        _send(context, runs, outbox, settings, world)
    return context


def _keeping(
    runs: Runs, routing: Routing, alerts: Telling, plans: Plans, measure: Measure, settings: Settings, world: World
) -> tuple[Ticker, ...]:
    """What looks after Runs that nobody calls for. Nothing is forgotten unless an operator says so."""
    again = Ticker("runs.alerts", alerts.again, world=world, interval_s=TELL_INTERVAL_S)
    look = Standing(runs, routing, alerts, plans, world, timedelta(seconds=settings.stuck_after_s)).look
    standing = Ticker("runs.standing", look, world=world, interval_s=settings.standing_interval_s)
    levels = Ticker("runs.levels", measure.watch, world=world, interval_s=settings.levels_interval_s)
    if settings.keep_events_days is None:
        return standing, levels, again
    keep = timedelta(days=settings.keep_events_days)

    async def prune() -> None:
        await prune_history(runs, world, keep)

    return standing, levels, again, Ticker("runs.prune", prune, world=world, interval_s=settings.prune_interval_s)


def _send(context: ComposedContext, runs: Runs, outbox: Outbox, settings: Settings, world: World) -> None:
    """Let the context send callbacks too."""
    sending = SendCallbacks(outbox.callbacks, outbox.secrets, outbox.receivers, world, outbox.random)
    servicer = CallbackServicer(runs, outbox.callbacks, outbox.secrets, world, outbox.random)
    ticker = Ticker("runs.callbacks", sending.tick, world=world, interval_s=settings.callback_interval_s)
    added = (CALLBACKS, lambda server: add_CallbackServiceServicer_to_server(servicer, server))
    context.registrations = (*context.registrations, added)
    context.tickers = (*context.tickers, ticker)
    context.finish = (sending.stop, *context.finish)
