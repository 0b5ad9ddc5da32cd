"""The life of one process: its contexts come up leaves first, ready is said last, and they go down in reverse.

Up:   database, migrations, doors open (not serving), contexts start in order, extra steps, serving, ready file.
Down: ready file away, not serving, sockets drain, contexts stop in reverse, channels, in-process door, database.

In-process calls are served until the last context has stopped: what drains may still need what lies below it.
"""

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from libs.host.certificates import LOOK_S, OwnCertificates
from libs.host.common_time import LOOK_S as LOOK_AT_TIME_S
from libs.host.common_time import CommonTime
from libs.host.embedded_postgres import EmbeddedPostgres
from libs.host.exporting import Export, Exporting, Silence, exporting
from libs.host.hosted import Builder, Context, Leaving
from libs.host.metrics_port import MetricsPort
from libs.host.placement import MEMORY, WITHOUT_DATABASE, Placement
from libs.host.ticker import Ticker
from libs.host.world import real_world
from libs.kernel.world import World
from libs.rpc.address import LOOPBACK, Address, Transport
from libs.rpc.admission import KeyAdmission
from libs.rpc.callers import CALLERS
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.telemetry import metrics, spans

STRANGERS_DEADLINE_S = 30.0
CALL_LIMIT = 2000
POSTGRES_WATCH_S = 0.5
STOP_MARGIN_S = 10.0

log = logging.getLogger(__name__)
BeforeReady = Callable[["Host"], Awaitable[object]]


class Host:
    """The contexts of one process, from start to stop. Each once."""

    def __init__(
        self,
        placement: Placement,
        env: Mapping[str, str],
        builders: Mapping[str, Builder],
        *,
        world: World | None = None,
        before_ready: Sequence[BeforeReady] = (),
        export: Export = exporting,
    ) -> None:
        """`before_ready` steps run when every context is at work and before anybody is told (apply a catalogue).
        `export` begins to send traces and metrics."""
        self.placement = placement
        self.env: dict[str, str] = dict(env)
        self._builders = builders
        self._world = world or real_world()
        self._before_ready = before_ready
        self._export = export
        self._exporting: Exporting = Silence()
        self._metrics: MetricsPort | None = None
        self._registry = LoopbackRegistry()
        self._postgres: EmbeddedPostgres | None = None
        self._certificates: OwnCertificates | None = None
        self._time: CommonTime | None = None
        self._watches: list[Ticker] = []
        self._server: RpcServer | None = None
        self._channels: Channels | None = None
        self._contexts: list[Context] = []

    @property
    def channels(self) -> Channels:
        """The doors to all contexts. RuntimeError before `start`."""
        if self._channels is None:
            raise RuntimeError("the host has not started")
        return self._channels

    @property
    def metrics_port(self) -> int:
        """Where the metrics are shown, once started; 0 where they are not shown on a port of their own."""
        return self._metrics.port if self._metrics is not None else 0

    @property
    def bound(self) -> Mapping[Address, Address]:
        """For every address asked for, the one that is served (a free port instead of port 0)."""
        return self._server.bound if self._server is not None else {}

    async def start(self) -> None:
        """Return when every context serves. On any failure call `stop`, which undoes what was done."""
        self.env["POINTSMAN_DATA"] = str(self.placement.data)
        self._begin_telling()
        if self.placement.tls is not None:
            self._certificates = OwnCertificates(self.placement.tls, self.placement.contexts, self._world.clock)
            self._keep("host.certificates", self._certificates.look, LOOK_S)
        tls = self._certificates.tls if self._certificates is not None else None
        await self._open_database()
        self._channels = Channels.from_env(self.env, registry=self._registry, tls=tls)
        world = await self._common_world()
        for name in self.placement.contexts:
            self._contexts.append(self._builders[name](self.env, self._channels.for_caller(name), world))
        for context in self._contexts:
            await context.migrate()
        self._server = RpcServer(
            self.placement.listen,
            registry=self._registry,
            admin=self.placement.admin,
            call_limit=CALL_LIMIT,
            assumed_deadline_s=STRANGERS_DEADLINE_S,
            admit=self._admission(),
            tls=tls,
            public=self.placement.public,
            callers=CALLERS,
        )
        for context in self._contexts:
            for _, add_to_server in context.registrations:
                self._server.add(add_to_server)
        self._make_socket_folders()
        self._tell_of_plain_doors()
        await self._server.start(serving=False)
        for context in self._contexts:
            await context.start()
            log.info("context %s has started", context.name)
        for step in self._before_ready:
            await step(self)
        await self._server.set_serving()
        self._tell_ready()

    async def stop(self) -> None:
        """Drain and undo everything that `start` did, in reverse. Never raises: what goes wrong is in the log."""
        if self.placement.ready_file is not None:
            self.placement.ready_file.unlink(missing_ok=True)
        for context in self._contexts:
            if isinstance(context, Leaving):
                context.leave()
        grace_s = self.placement.drain_s
        if self._server is not None:
            await self._guarded("draining calls", self._server.drain(grace_s, self.placement.drain_lag_s))
        while self._contexts:
            context = self._contexts.pop()
            await self._guarded(f"stopping {context.name}", context.stop())
        if self._channels is not None:
            await self._guarded("closing channels", self._channels.close(0.0))
        if self._server is not None:
            await self._guarded("closing the server", self._server.close(grace_s))
        while self._watches:
            watch = self._watches.pop()
            await self._guarded(f"stopping {watch.name}", watch.stop())
        if self._time is not None:
            await self._guarded("closing the time", self._time.close())
        if self._postgres is not None:
            await self._guarded("stopping the database", self._postgres.stop())
        if self._exporting.tracer is not None:
            spans.PROCESS.use(None)
        if self._metrics is not None:
            await self._guarded("closing the port of metrics", self._metrics.close())
        await self._guarded("sending the rest of traces and metrics", self._exporting.stop())

    def _begin_telling(self) -> None:
        """Before channels and servers are made, which look once whose spans they make."""
        self._exporting = self._export(self.env, self.placement.contexts)
        spans.PROCESS.use(self._exporting.tracer or spans.installed_tracer())
        if self.placement.metrics is not None:
            self._metrics = MetricsPort(self.placement.metrics, metrics.PROCESS)
        if self._exporting.interval_s is not None:
            self._keep("host.metrics", self._exporting.send, self._exporting.interval_s)

    def _admission(self) -> KeyAdmission | None:
        """What asks the callers of public ports for a key, which the edge recognises."""
        if self.placement.public:
            return KeyAdmission(self.channels.for_caller("host").to("edge"), self.placement.tenant_calls)
        return None

    async def _open_database(self) -> None:
        """Start the embedded database if no other is named, and tell the contexts its address."""
        if self.placement.database_url is None:
            self._postgres = EmbeddedPostgres(self.placement.data / "postgres")
            await self._postgres.start()
            self._keep("host.postgres", self._postgres.ensure_running, POSTGRES_WATCH_S)
            self.env["POINTSMAN_DATABASE_URL"] = self._postgres.url
        elif self.placement.database_url:
            self.env["POINTSMAN_DATABASE_URL"] = self.placement.database_url

    async def _common_world(self) -> World:
        """The world of the contexts: where there is a database they go by its time."""
        url = self.env.get("POINTSMAN_DATABASE_URL", "")
        if url in ("", MEMORY) or WITHOUT_DATABASE.issuperset(self.placement.contexts):
            return self._world
        self._time = CommonTime(url, self._world.clock)
        await self._time.begin()
        self._keep("host.time", self._time.look, LOOK_AT_TIME_S)
        return replace(self._world, clock=self._time.clock, wall=self._world.clock)

    def _keep(self, name: str, look: Callable[[], Awaitable[object]], interval_s: float) -> None:
        """Look again and again, until all else has stopped."""
        watch = Ticker(name, look, world=self._world, interval_s=interval_s)
        watch.start()
        self._watches.append(watch)

    def _make_socket_folders(self) -> None:
        admin = () if self.placement.admin is None else (self.placement.admin,)
        for address in (*self.placement.listen, *admin):
            if address.transport is Transport.UNIX:
                Path(address.target.removeprefix("unix:")).parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _tell_of_plain_doors(self) -> None:
        """Inner doors ask for no key: without certificates, whoever reaches one from elsewhere is let in."""
        for address in self.placement.listen if self.placement.tls is None else ():
            inner = address.transport is Transport.TCP and address not in self.placement.public
            if inner and not address.is_of_this_machine:
                log.warning("contexts are served on %s to whoever reaches it; see docs/guides/security.md", address)

    def _tell_ready(self) -> None:
        served = {str(asked): str(found) for asked, found in self.bound.items() if asked != LOOPBACK}
        log.info("ready", extra={"contexts": ",".join(self.placement.contexts), "listening": ",".join(served.values())})
        if self.placement.ready_file is not None:
            facts = {"pid": os.getpid(), "contexts": list(self.placement.contexts), "listening": served}
            _write_whole(self.placement.ready_file, json.dumps(facts) + "\n")

    async def _guarded(self, doing: str, step: Awaitable[object]) -> None:
        """One step of stopping: bounded in time, and whatever it raises does not keep the next one from running."""
        try:
            async with asyncio.timeout(self.placement.drain_s + self.placement.drain_lag_s + STOP_MARGIN_S):
                await step
        except Exception:
            log.exception("%s failed", doing)


def _write_whole(path: Path, text: str) -> None:
    """Others poll for this file: it appears with all its text or not at all."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_text(text)
    fresh.replace(path)
