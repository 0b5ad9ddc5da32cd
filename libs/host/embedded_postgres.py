"""PostgreSQL from a wheel, as a child of this process: no installation, no account, no port.

    async with EmbeddedPostgres(Path("data/postgres")) as postgres:
        database = Database(postgres.url, schema="routing")

The server is a direct child and dies with us (SIGINT from the kernel, a fast and clean stop), also after kill -9.
It listens on a Unix socket in a private directory and on nothing else. Whatever an earlier life left behind (a stale
postmaster.pid, a dying server, a half-made data directory) is healed at start. Two starts on one directory: the second
fails at once and names the pid of the first.

Inside the home directory: `data/` (the cluster), `server.log`, `lock`, and the socket when the path is short enough.
"""

import asyncio
import logging
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from libs.host import cluster
from libs.host.cluster import EmbeddedPostgresError
from libs.host.identity import Identity, best

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError"]

USER = "pointsman"
POLL_S = 0.01
LOG_LIMIT_BYTES = 8 * 1024 * 1024
LOG_TAIL_BYTES = 2000
FAST_STOP_S = 20.0
IMMEDIATE_STOP_S = 5.0
SETTINGS: Mapping[str, str] = {
    "cluster_name": cluster.CLUSTER_NAME,
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "max_connections": "120",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    # One node without replicas: no WAL for standbys, no idle helper processes.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_logical_replication_workers": "0",
    "io_method": "sync",
    "jit": "off",
}

log = logging.getLogger(__name__)


class EmbeddedPostgres:
    """One server on one home directory. Not reentrant; `start` after `stop` is allowed."""

    def __init__(
        self,
        home: Path,
        *,
        settings: Mapping[str, str] | None = None,
        durable: bool = True,
        identity: Identity | None = None,
        start_timeout_s: float = 60.0,
    ) -> None:
        """`settings` override server parameters. `durable=False` is for tests: fast, and a power cut loses data.

        `start_timeout_s` bounds the wait for readiness, crash recovery included.
        """
        self._home = home.absolute()
        self._data = self._home / "data"
        self._settings = {**SETTINGS, **({} if durable else {"fsync": "off", "full_page_writes": "off"})}
        self._settings.update(settings or {})
        self._durable = durable
        self._identity = identity
        self._start_timeout_s = start_timeout_s
        self._lock = cluster.DirectoryLock(self._home)
        self._process: subprocess.Popen[bytes] | None = None
        self._socket_directory: Path | None = None

    @property
    def url(self) -> str:
        """The address of the default database, for `libs.store.Database`."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """The address of a database of this server."""
        if self._socket_directory is None:
            raise EmbeddedPostgresError("the embedded PostgreSQL is not started")
        return f"postgresql://{USER}@/{quote(database)}?host={quote(str(self._socket_directory), safe='/')}"

    @property
    def pid(self) -> int:
        """The pid of the server process."""
        if self._process is None:
            raise EmbeddedPostgresError("the embedded PostgreSQL is not started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the server process lives."""
        return self._process is not None and self._process.poll() is None

    async def __aenter__(self) -> "EmbeddedPostgres":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Return when the server takes connections. Raises EmbeddedPostgresError with the server's last words."""
        if self._process is not None:
            raise EmbeddedPostgresError("the embedded PostgreSQL is started already")
        if self._identity is None:
            self._identity = await asyncio.to_thread(best)
        cluster.prepare_home(self._home, self._identity)
        self._lock.acquire()
        try:
            await self._make_cluster(self._identity)
            self._socket_directory = cluster.socket_directory(self._home, self._identity)
            await self._launch(self._identity)
        except BaseException:
            await self.stop()
            raise

    async def ensure_running(self) -> bool:
        """Start the server again if it has died. True if that was needed."""
        if self._process is None or self._identity is None or self.is_running:
            return False
        log.error("the embedded PostgreSQL died with code %s; starting it again", self._process.returncode)
        await self._launch(self._identity)
        return True

    async def stop(self) -> None:
        """Stop fast and cleanly, harder if it does not obey. Harmless when not started."""
        process, self._process = self._process, None
        try:
            if process is not None:
                await _end(process)
        finally:
            folder, self._socket_directory = self._socket_directory, None
            if folder is not None and folder != self._home:
                with suppress(OSError):
                    folder.rmdir()
            self._lock.release()

    async def _make_cluster(self, identity: Identity) -> None:
        """See that `data/` is a whole cluster of our version. It is made under another name and renamed when whole."""
        cluster.discard_half_made(self._home)
        if self._data.exists():
            cluster.check_version(self._data)
            return
        fresh = self._home / f"{cluster.FRESH_PREFIX}{os.getpid()}"
        options = ["-D", str(fresh), "-U", USER, "-A", "trust", "--encoding=UTF8", "--locale=C"]
        if not self._durable:
            options.append("--no-sync")
        with (self._home / "initdb.log").open("wb") as output:
            process = self._spawn(identity, "initdb", options, signal.SIGKILL, output.fileno())
            try:
                await _until(lambda: process.poll() is not None, self._start_timeout_s)
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()
        if process.returncode != 0:
            words = _tail(self._home / "initdb.log")
            shutil.rmtree(fresh, ignore_errors=True)
            raise EmbeddedPostgresError(f"initdb failed with code {process.returncode}: {words}")
        fresh.rename(self._data)

    async def _launch(self, identity: Identity) -> None:
        await self._clear_past_life()
        journal = self._home / "server.log"
        with suppress(FileNotFoundError):
            if journal.stat().st_size > LOG_LIMIT_BYTES:
                journal.rename(self._home / "server.log.1")
        options = ["-D", str(self._data)]
        for name, value in {**self._settings, "unix_socket_directories": str(self._socket_directory)}.items():
            options += ["-c", f"{name}={value}"]
        with journal.open("ab") as output:
            process = self._process = self._spawn(identity, "postgres", options, signal.SIGINT, output.fileno())
        ready = await _until(lambda: process.poll() is not None or self._is_ready(process.pid), self._start_timeout_s)
        if process.poll() is not None:
            raise EmbeddedPostgresError(f"PostgreSQL ended with code {process.returncode}: {_tail(journal)}")
        if not ready:
            raise EmbeddedPostgresError(f"PostgreSQL was not ready in {self._start_timeout_s:g} s: {_tail(journal)}")

    def _spawn(
        self, identity: Identity, program: str, options: list[str], death_signal: signal.Signals, output: int
    ) -> subprocess.Popen[bytes]:
        # Synchronous on purpose: the kernel ties the death signal to the starting thread, so no worker thread may do
        # it. A session of its own, so that Ctrl-C in a terminal reaches us and not the server before we have drained.
        return subprocess.Popen(
            identity.command(cluster.binary(program), options, death_signal),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},
            start_new_session=True,
        )

    def _is_ready(self, pid: int) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except (FileNotFoundError, UnicodeDecodeError):
            return False
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    async def _clear_past_life(self) -> None:
        """Wait for what still runs in the data directory, then remove the stale lock files.

        A pid in them may by now belong to somebody else (small pids repeat in containers), or to a zombie that nobody
        reaps, and PostgreSQL would refuse to start; so the processes are asked, not the files.
        """
        pid = cluster.server_pid(self._data)
        if pid in cluster.working_in(self._data):
            if cluster.is_foreign(pid):
                raise EmbeddedPostgresError(
                    f"another PostgreSQL server (process {pid}) runs on {self._data}; stop it first"
                )
            cluster.send(pid, signal.SIGINT)
        for number, patience_s in ((signal.SIGQUIT, FAST_STOP_S), (signal.SIGKILL, IMMEDIATE_STOP_S)):
            if await _until(lambda: not cluster.working_in(self._data), patience_s):
                break
            for survivor in cluster.working_in(self._data):
                cluster.send(survivor, number)
        if not await _until(lambda: not cluster.working_in(self._data), IMMEDIATE_STOP_S):
            raise EmbeddedPostgresError(f"processes of an earlier server do not leave {self._data}")
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        if self._socket_directory is not None:
            (self._socket_directory / f"{cluster.SOCKET_NAME}.lock").unlink(missing_ok=True)


async def _end(process: subprocess.Popen[bytes]) -> None:
    for number, patience_s in ((signal.SIGINT, FAST_STOP_S), (signal.SIGQUIT, IMMEDIATE_STOP_S)):
        if process.poll() is None:
            process.send_signal(number)
        if await _until(lambda: process.poll() is not None, patience_s):
            return
    process.kill()
    process.wait()


async def _until(condition: Callable[[], bool], patience_s: float) -> bool:
    """Poll the condition until it holds; False when patience ends. A child's end has no event that fits every loop."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True


def _tail(path: Path) -> str:
    with suppress(FileNotFoundError):
        return path.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace").strip()
    return "(no log)"
