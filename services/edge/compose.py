"""Puts the context together: the only module that knows both its inside and its machines."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from libs.blobs.blob import Blobs
from libs.blobs.opening import open_blobs
from libs.fetching.fetcher import Fetcher, rules_of
from libs.host.hosted import Registration
from libs.kernel.world import World
from libs.materials.intake import Intake
from libs.store.database import Database
from libs.store.migrations import migrate
from libs.telemetry import metrics as process_metrics
from libs.telemetry.metrics import Metrics
from pointsman.edge.v1.admission_service_pb2_grpc import add_AdmissionServiceServicer_to_server
from pointsman.edge.v1.key_service_pb2_grpc import add_KeyServiceServicer_to_server
from services.edge.app.authenticate import Authenticator
from services.edge.app.cancel_by_key import CancelByKey
from services.edge.app.completions import Completions
from services.edge.app.create_run import CreateRun
from services.edge.app.judge_request import JudgeRequest
from services.edge.app.keyed_turns import KeyedTurns
from services.edge.app.make_call import MakeCall
from services.edge.app.open_requests import OpenRequests
from services.edge.app.request_quotas import RequestQuotas
from services.edge.app.reveal import Reveal
from services.edge.app.shared_feeds import SharedFeeds
from services.edge.app.stream_watch import StreamWatch
from services.edge.app.take_materials import TakeMaterials
from services.edge.domain import keys
from services.edge.peers.budgets import BudgetsPeer
from services.edge.peers.call_records import CallRecordsPeer
from services.edge.peers.callbacks import CallbacksPeer
from services.edge.peers.calls import CallsPeer
from services.edge.peers.capacity import CapacityPeer
from services.edge.peers.catalog import CatalogPeer
from services.edge.peers.desks import DesksPeer
from services.edge.peers.health import HealthPeer
from services.edge.peers.overseeing import OverseeingPeer
from services.edge.peers.routing import RoutingPeer
from services.edge.peers.runs import RunsPeer
from services.edge.ports import Keys, Owners, RequestCounts
from services.edge.routes.artifacts import ArtifactRoutes
from services.edge.routes.budgets import BudgetRoutes
from services.edge.routes.call_records import CallRecordRoutes
from services.edge.routes.callbacks import CallbackRoutes
from services.edge.routes.calling import Calling
from services.edge.routes.calls import CallRoutes
from services.edge.routes.catalog import CatalogRoutes
from services.edge.routes.commands import CommandRoutes
from services.edge.routes.desks import DeskRoutes
from services.edge.routes.gate import Paths
from services.edge.routes.keys import KeyRoutes
from services.edge.routes.levels import LevelRoutes
from services.edge.routes.listener import Listener
from services.edge.routes.models import ModelRoutes
from services.edge.routes.openai import OpenAiRoutes
from services.edge.routes.openapi import DocumentRoutes
from services.edge.routes.operators import OperatorRoutes
from services.edge.routes.overseeing import OverseeingRoutes
from services.edge.routes.pasts import PastRoutes
from services.edge.routes.probes import ProbeRoutes
from services.edge.routes.replays import ReplayRoutes
from services.edge.routes.restores import RestoreRoutes
from services.edge.routes.runs import RunRoutes
from services.edge.routes.shell import Shell, unknown_path
from services.edge.routes.stream import StreamRoutes
from services.edge.routes.tasks import TaskRoutes
from services.edge.servicer import AdmissionServicer, KeyServicer
from services.edge.settings import Settings
from services.edge.store.admin_key import read_or_make
from services.edge.store.memory import MemoryCounts, MemoryKeys, MemoryOwners
from services.edge.store.postgres import PostgresCounts, PostgresKeys, PostgresOwners

SCHEMA = "edge"
VERSIONS = Path(__file__).parent / "store" / "migrations" / "versions"
KEY_SERVICE, ADMISSION_SERVICE = "pointsman.edge.v1.KeyService", "pointsman.edge.v1.AdmissionService"
Stores = tuple[Keys, Owners, RequestCounts]


@dataclass(frozen=True, slots=True)
class AdminKey:
    """The key of the operator. `fresh`: it was made at this start."""

    text: str
    fresh: bool


class EdgeContext:
    """A `hosted.Context` that owns an HTTP port. `app` is the ASGI application, `listener` the port."""

    name = SCHEMA

    def __init__(self, settings: Settings, house: "House", database: Database | None) -> None:
        self._settings = settings
        self._house = house
        self._database = database
        self.app = house.app()
        self.listener = Listener(
            self.app,
            settings.http_host,
            settings.http_port,
            house.world.ids.ulid,
            settings.drain_s,
            settings.patience_s,
        )
        self.registrations: tuple[Registration, ...] = (
            (KEY_SERVICE, lambda server: add_KeyServiceServicer_to_server(house.key_servicer(), server)),
            (
                ADMISSION_SERVICE,
                lambda server: add_AdmissionServiceServicer_to_server(
                    AdmissionServicer(house.judge, house.reveal), server
                ),
            ),
        )
        self.admin_key: AdminKey | None = None

    @property
    def url(self) -> str:
        """Where it answers HTTP, once started."""
        return self.listener.url

    async def migrate(self) -> None:
        """Bring the schema up to date, if there is one."""
        if self._database is not None:
            await migrate(self._settings.database_url, schema=SCHEMA, versions=VERSIONS)

    async def start(self) -> None:
        """Settle the admin key, then open the port. A key made now is shown once, on stdout: never in a log."""
        admin = self.admit_admin()
        if admin.fresh:
            sys.stdout.write(f"admin key, shown this once and kept in {self._settings.data_directory}/admin.key:\n")
            sys.stdout.write(f"{admin.text}\n")
            sys.stdout.flush()
        await self.listener.start()

    def admit_admin(self) -> AdminKey:
        """Take the admin key of the settings, or of the data directory, made if it is missing; once."""
        if self.admin_key is not None:
            return self.admin_key
        text, fresh = self._settings.admin_key, False
        if not text:
            text, fresh = read_or_make(
                Path(self._settings.data_directory),
                lambda: keys.spell(keys.ADMIN_KEY_ID, os.urandom(keys.SECRET_BYTES)),
            )
        self._house.authenticator.admit_admin(text)
        self.admin_key = AdminKey(text, fresh)
        return self.admin_key

    def leave(self) -> None:
        """Answer /readyz with 503 from now on; everything else is served until `stop`."""
        self._house.leaving = True

    async def stop(self) -> None:
        """Tell the streams, let requests in hand finish, close the port and the database."""
        self._house.watch.drain()
        try:
            await self.listener.stop(self._house.completions.end)
            await self._house.feeds.close()
            await self._house.watch.close()
            await self._house.quotas.close()
            await self._house.intake.close()
        finally:
            if self._database is not None:
                await self._database.close()


class House:
    """The parts, wired."""

    def __init__(
        self,
        settings: Settings,
        channels: Any,
        world: World,
        stores: Stores,
        intake: Intake,
        blobs: Blobs,
        metrics: Metrics,
    ) -> None:
        self.settings = settings
        self.world = world
        self.intake = intake
        self._keys, self._owners, counts = stores
        self._blobs = blobs
        self._metrics = metrics
        self.authenticator = Authenticator(self._keys, world.clock, settings.key_cache_s)
        self.reveal = Reveal(self._owners, world.clock)
        self._runs = RunsPeer(channels.to("runs"))
        self.feeds = SharedFeeds(self._runs, self.reveal)
        self.completions = Completions()
        self.watch = StreamWatch(
            self.authenticator, world.clock, heartbeat_s=settings.heartbeat_s, check_s=settings.stream_check_s
        )
        self._desks = DesksPeer(channels.to("runs"))
        self._overseen = OverseeingPeer(channels.to("runs"))
        self._callbacks = CallbacksPeer(channels.to("runs"))
        self._routing = RoutingPeer(channels.to("routing"))
        self._calls = CallsPeer(channels.to("routing"))
        self._call_records = CallRecordsPeer(channels.to("routing"))
        self._catalog = CatalogPeer(channels.to("routing"))
        self.leaving = False
        self.quotas = RequestQuotas(self._catalog, counts, world)
        self._health = HealthPeer(channels.to("health"))
        self._capacity = CapacityPeer(channels.to("capacity"))
        self._budgets = BudgetsPeer(channels.to("cost_quote"))
        self._take = TakeMaterials(intake, self.reveal, blobs)
        self._turns = KeyedTurns(world.clock, settings.key_turn_s)
        self._create = CreateRun(self._runs, self._take, self._turns, world)
        self._make = MakeCall(self._calls, self._take, self.reveal)
        self.judge = JudgeRequest(self._runs, self._create, self._make, self._take)

    def key_servicer(self) -> KeyServicer:
        """The gRPC side."""
        return KeyServicer(self._keys, self.authenticator, self.quotas, self.world, os.urandom)

    def app(self) -> Shell:
        """The HTTP side."""
        settings, reveal = self.settings, self.reveal
        cancel_by_key = CancelByKey(self._runs, self._turns, self.world.clock, settings.key_look_s)
        calling = Calling(self._make, self.world, settings.body_limit_bytes)
        parts = (
            RunRoutes(self._runs, reveal, self._create, cancel_by_key, settings.body_limit_bytes),
            CommandRoutes(self._runs, reveal, self._take),
            StreamRoutes(self._runs, self.feeds, self.watch, self._metrics),
            TaskRoutes(self._routing, reveal),
            ReplayRoutes(self._routing, self.world.clock),
            CallRoutes(calling, self._calls, reveal),
            CallRecordRoutes(self._call_records, reveal),
            self._openai(calling),
            ModelRoutes(self._catalog),
            ArtifactRoutes(self._blobs, reveal, settings.upload_limit_bytes, settings.links, self.world.clock),
            OperatorRoutes(self._routing, self._health, self._capacity),
            OverseeingRoutes(self._overseen),
            RestoreRoutes(self._routing),
            BudgetRoutes(self._budgets),
            DeskRoutes(self._desks, self._take),
            LevelRoutes(self._runs),
            PastRoutes(self._routing, self._health),
            CatalogRoutes(self._catalog, self.world.ids),
            CallbackRoutes(self._callbacks),
            KeyRoutes(self._keys, self.authenticator, self.world, os.urandom),
            ProbeRoutes(self._probes(), self._metrics, lambda: self.leaving),
        )
        operations = tuple(operation for part in parts for operation in part.operations())
        served = (*operations, *DocumentRoutes(operations).operations())
        paths = Paths(served, self.authenticator, self.quotas, OpenRequests(settings.open_limits), unknown_path)
        return Shell(paths, self.world, self._metrics)

    def _openai(self, calling: Calling) -> OpenAiRoutes:
        return OpenAiRoutes(
            calling,
            self._blobs,
            self.authenticator,
            self._metrics,
            clock=self.world.clock,
            check_s=self.settings.stream_check_s,
            completions=self.completions,
        )

    def _probes(self) -> dict[str, Any]:
        return {
            "store": self._owners.ping,
            "runs": self._runs.ping,
            "routing": self._routing.ping,
            "health": self._health.ping,
            "capacity": self._capacity.ping,
            "cost_quote": self._budgets.ping,
        }


def build(
    settings: Settings,
    channels: Any,
    world: World,
    *,
    blobs: Blobs | None = None,
    metrics: Metrics | None = None,
    fetcher: Fetcher | None = None,
) -> EdgeContext:
    """The context, not yet at work. It calls every context but provider_adapter, and fetches what users name by URL."""
    kept = blobs or open_blobs(settings.blobs)
    counted = metrics or process_metrics.PROCESS
    intake = Intake(fetcher or Fetcher(rules_of(settings.allow_private_urls)), kept)
    if settings.database_url == "memory:":
        stores: Stores = (MemoryKeys(), MemoryOwners(), MemoryCounts())
        return EdgeContext(settings, House(settings, channels, world, stores, intake, kept, counted), None)
    database = Database(settings.database_url, schema=SCHEMA)
    stores = (PostgresKeys(database), PostgresOwners(database), PostgresCounts(database))
    house = House(settings, channels, world, stores, intake, kept, counted)
    return EdgeContext(settings, house, database)
