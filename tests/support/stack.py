"""The whole product as real processes, beside real local providers, in either layout behind one handle.

`AllInOne` is `pointsman up`: one process and its embedded database. `SevenProcesses` is `python -m services CONTEXT`
seven times over Unix sockets, with a database server of ours.

    async with running(AllInOne, setting) as stack:
        async with stack.visit(): …

Tests drive it through the public contract alone: `stack.api` (HTTP with the admin key), `stack.lab` (what the providers
are told to do), `stack.address_of(service)` (gRPC). `kill` is kill -9 of everything, database and providers included;
`start` after `kill` or `stop` goes on with the same data on the same ports.
"""

import json
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cli.demo.stage import free_ports
from libs.host.embedded_postgres import EmbeddedPostgres
from libs.host.placement import START_ORDER
from tests.support import processes
from tests.support.postgres import SETTINGS, copy_prepared_cluster
from tests.support.visitor import Lab, Visitor
from tests.support.waiting import eventually

START_S = 60.0
STOP_S = 40.0
# Everything is stopped at once, so capacity may be gone before routing's last release: such a slot lapses (CAP-8), and
# nobody here wants to wait a minute for it.
SLOTS = {"ROUTING_CAPACITY_TTL_S": "12", "ROUTING_RENEW_INTERVAL_S": "4"}


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the play is set: the providers' accounts (the shape of the studio's --config) and the catalogue.

    `catalog` makes the text from the providers' address. `secrets` are the variables that it names.
    """

    accounts: Mapping[str, Any]
    catalog: Callable[[str], str]
    secrets: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)


class Stack:
    """What both layouts share: the providers, the key, visitors, and an end that leaves nothing behind."""

    def __init__(self, folder: Path, setting: Setting) -> None:
        self.folder = folder
        self.setting = setting
        self.prepared = True
        self.mark = uuid.uuid4().hex
        self.data = folder / "data"
        http, grpc, studio = free_ports(3)
        self.url = f"http://127.0.0.1:{http}"
        self.grpc = f"127.0.0.1:{grpc}"
        self.studio_url = f"http://127.0.0.1:{studio}"
        self.key = f"pm_e2e_{uuid.uuid4().hex}"
        self.keys = [self.key]
        """One key of every tenant that has Runs here: for the books."""
        self.api: Visitor
        self.lab: Lab
        self.said: list[str] = []
        """What the product complained of, once the stack is gone."""
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    async def start(self) -> None:
        """Return when the product is ready with the catalogue in force. AssertionError with the log's end if not."""
        await self.start_providers()
        await self.start_product()

    @asynccontextmanager
    async def visit(self) -> AsyncIterator["Stack"]:
        """The stack with `api` and `lab` open, on the running loop."""
        async with AsyncExitStack() as stack:
            self.api = await stack.enter_async_context(Visitor(self.url, self.key))
            self.lab = await stack.enter_async_context(Lab(self.studio_url, ""))
            yield self

    def as_holder(self, key: str, url: str = "") -> Visitor:
        """A visitor with another key, or at another door; use inside `async with`."""
        return Visitor(url or self.url, key)

    def address_of(self, service: str) -> str:
        """The gRPC target of a service by its full name."""
        raise LookupError(service)

    async def stop(self) -> dict[str, int]:
        """SIGTERM the product, then the providers; the product's exit codes by process. Nothing may be left."""
        before = self._everything()
        outside = {"studio": self._children.pop("studio")} if "studio" in self._children else {}
        product, self._children = self._children, {}
        try:
            codes = await self._ended(product)
        finally:
            await self._stop_database()
            await self._ended(outside)
        await self._nothing_left(before)
        return codes

    async def kill(self) -> None:
        """kill -9 of every process at once: product, database and providers."""
        everything = self._everything()
        processes.send(everything, signal.SIGKILL)
        for child in self._children.values():
            child.wait()
        self._children.clear()
        await self._nothing_left(everything)

    def product_pids(self) -> set[int]:
        """Every process of the product, its database included."""
        return self._everything() - processes.tree(self._children["studio"].pid)

    def _everything(self) -> set[int]:
        return set().union(*(processes.tree(child.pid) for child in self._children.values()))

    async def _ended(self, children: Mapping[str, "subprocess.Popen[bytes]"]) -> dict[str, int]:
        for child in children.values():
            if child.poll() is None:
                child.terminate()
        await _until(lambda: all(child.poll() is not None for child in children.values()), STOP_S)
        stubborn = [name for name, child in children.items() if child.poll() is None]
        for name in stubborn:
            children[name].kill()
            children[name].wait()
        assert not stubborn, f"did not stop within {STOP_S:g} s: {stubborn}; {self._words()}"
        return {name: child.returncode for name, child in children.items()}

    async def _nothing_left(self, before: set[int]) -> None:
        def left() -> set[int]:
            return processes.alive(before) | processes.marked(self.mark)

        await _until(lambda: not left(), STOP_S)
        orphans = left()
        processes.send(orphans, signal.SIGKILL)
        assert not orphans, f"orphans were left: {orphans}"

    async def start_providers(self) -> None:
        """Return when the local providers answer."""
        config = self.folder / "accounts.yaml"
        config.write_text(yaml.safe_dump(dict(self.setting.accounts)), encoding="utf-8")
        ready = self.folder / "studio.ready"
        ready.unlink(missing_ok=True)
        port = self.studio_url.rpartition(":")[2]
        options = ("--port", port, "--config", str(config), "--data", str(self.folder / "studio"))
        self._spawn("studio", ["-m", "services.studio", *options, "--ready-file", str(ready)], {})
        await self._appears({"studio": ready})

    async def start_product(self) -> None:
        """Return when every context serves and the catalogue is in force."""
        raise LookupError("a layout starts the product")

    async def _prepare(self, home: Path) -> None:
        if self.prepared and not home.exists():
            await copy_prepared_cluster(home)

    async def _stop_database(self) -> None:
        """Nothing: the product owns its database."""

    def _spawn(self, name: str, arguments: list[str], env: Mapping[str, str]) -> None:
        more = {"POINTSMAN_LOG_LEVEL": "info", "POINTSMAN_ALLOW_PRIVATE_URLS": "1", **SLOTS}
        more |= {**self.setting.settings, **env}
        outer = processes.environment(self.mark, {**self.setting.secrets, **more})
        self._children[name] = processes.spawn([sys.executable, *arguments], outer, self.folder / f"{name}.log")

    async def _appears(self, ready: Mapping[str, Path]) -> None:
        def done() -> bool:
            return all(path.exists() for path in ready.values()) or bool(self._dead(ready))

        await _until(done, START_S)
        late = [name for name, path in ready.items() if not path.exists()]
        assert not late, f"not ready: {late}, ended: {self._dead(ready)}; {self._words()}"

    def _dead(self, names: Mapping[str, Path]) -> list[str]:
        return [name for name in names if self._children[name].poll() is not None]

    def _words(self) -> str:
        logs = {log.name: log.read_text(errors="replace")[-1500:] for log in sorted(self.folder.glob("*.log"))}
        return "\n".join(f"--- {name}\n{text}" for name, text in logs.items())

    def _complaints(self) -> list[str]:
        """Log lines of the product at level error or above, and whatever it died of."""
        logs = [log for log in sorted(self.folder.glob("*.log")) if log.stem != "studio"]
        lines = [(log.stem, line) for log in logs for line in log.read_text(errors="replace").splitlines()]
        return [f"{name}: {line}" for name, line in lines if _is_complaint(line)]


def _is_complaint(line: str) -> bool:
    if line.startswith("{"):
        return json.loads(line).get("level") in {"error", "critical"}
    return line.startswith("Traceback")


class AllInOne(Stack):
    """`pointsman up --no-providers`: every context in one process, the database embedded."""

    async def start_product(self) -> None:
        catalog, ready = self.folder / "catalog.yaml", self.folder / "up.ready"
        catalog.write_text(self.setting.catalog(self.studio_url), encoding="utf-8")
        ready.unlink(missing_ok=True)
        await self._prepare(self.data / "postgres")
        options = ["--http", self.url.removeprefix("http://"), "--grpc", self.grpc, "--data", str(self.data)]
        options += ["--catalog", str(catalog), "--ready-file", str(ready), "--no-providers"]
        self._spawn("up", ["-m", "cli", "up", *options], {"POINTSMAN_ADMIN_KEY": self.key})
        await self._appears({"up": ready})

    def address_of(self, service: str) -> str:
        """All services are on the public port."""
        return self.grpc


class SevenProcesses(Stack):
    """Each context in its own process, calls over Unix sockets, one database server that we own.

    `members` are the processes: a context by its name. Whoever has other members says what they host and where.
    """

    members: tuple[str, ...] = START_ORDER

    def __init__(self, folder: Path, setting: Setting) -> None:
        super().__init__(folder, setting)
        self._postgres = EmbeddedPostgres(folder / "pg", settings=SETTINGS, durable=False)

    def contexts_of(self, member: str) -> tuple[str, ...]:
        """What that process hosts."""
        return (member,)

    def sockets_of(self, context: str) -> list[str]:
        """The socket of every process that hosts the context."""
        return [self._socket(member) for member in self.members if context in self.contexts_of(member)]

    async def start_product(self) -> None:
        if not await self._postgres.ensure_running():
            await self._prepare(self.folder / "pg")
            await self._postgres.start()
        await self._appears({member: self._start_member(member) for member in self.members})
        async with self.visit():
            await self.api.call("POST", "/v1/operator/catalog:apply", text=self.setting.catalog(self.studio_url))

    def kill_members(self, *members: str) -> None:
        """kill -9 of these processes, all before the first is waited for."""
        gone = [self._children.pop(member) for member in members]
        for child in gone:
            child.kill()
        for child in gone:
            child.wait()

    async def restart_context(self, name: str) -> None:
        """kill -9 of one context's process, and a new one in its place; returns when that is ready."""
        self.kill_members(name)
        await self._appears({name: self._start_member(name)})

    def _socket(self, member: str) -> str:
        return f"unix:{self.folder}/{member}.sock"

    def _start_member(self, member: str) -> Path:
        """Start it; the file that appears when it is ready."""
        ready = self.folder / f"{member}.ready"
        ready.unlink(missing_ok=True)
        sockets = {name: self.sockets_of(name) for name in START_ORDER}
        replicated = [name for name in self.contexts_of(member) if len(sockets[name]) > 1]
        env = {
            **{f"PEER_{name.upper()}": ",".join(listed) for name, listed in sockets.items()},
            **{f"LISTEN_{name.upper()}": self._socket(member) for name in replicated},
            "POINTSMAN_DATABASE_URL": self._postgres.url,
            "POINTSMAN_DATA": str(self.data),
            "POINTSMAN_HTTP": self._http_of(member),
            "POINTSMAN_ADMIN_KEY": self.key,
        }
        self._spawn(member, ["-m", "services", *self.contexts_of(member), "--ready-file", str(ready)], env)
        return ready

    def _http_of(self, member: str) -> str:
        """Where that process listens for HTTP if it hosts the edge."""
        return self.url.removeprefix("http://")

    async def _stop_database(self) -> None:
        await self._postgres.stop()

    def _everything(self) -> set[int]:
        server = processes.tree(self._postgres.pid) if self._postgres.is_running else set()
        return super()._everything() | server

    def address_of(self, service: str) -> str:
        """The first socket of the context that hosts it: `pointsman.CONTEXT.v1.Service`."""
        return self.sockets_of(service.split(".")[1])[0]


@asynccontextmanager
async def running(
    kind: type[Stack], setting: Setting, *, start: bool = True, prepared: bool = True
) -> AsyncIterator[Stack]:
    """A stack, started unless the caller does that, and stopped at the end. Its database has its tables already, unless
    it is to be empty as in a newcomer's hands.

    Its folder has a short path, for sockets, and can be passed by the other user that a database may run as.
    """
    with tempfile.TemporaryDirectory(prefix="pm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        stack = kind(folder, setting)
        stack.prepared = prepared
        try:
            if start:
                await stack.start()
            yield stack
        except BaseException:
            await stack.kill()
            raise
        finally:
            await stack.stop()
            stack.said = stack._complaints()


async def _until(condition: Callable[[], bool], within_s: float) -> None:
    """Wait for the condition, or for the time to be over: which of both is the caller's to see."""
    with suppress(AssertionError):
        await eventually(condition, within_s)
