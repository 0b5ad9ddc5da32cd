"""The embedded PostgreSQL through kills, races and odd places, with real processes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from libs.host import identity
from libs.host.cluster import is_foreign, working_in
from libs.host.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from libs.host.identity import Identity
from tests.support.postgres import passable_folder
from tests.support.waiting import eventually

OWNER = Path(__file__).with_name("owner.py")
ROOT = Path(__file__).resolve().parents[3]
IS_ROOT = os.geteuid() == 0
IDENTITIES = [found for found in (identity.namespace(), identity.nobody()) if found] if IS_ROOT else [identity.direct()]


@pytest.fixture
def home() -> Iterator[Path]:
    """A home directory that does not exist yet, where others may pass."""
    with passable_folder() as folder:
        yield folder / "pg"


def server_on(home: Path, who: Identity | None = None) -> EmbeddedPostgres:
    return EmbeddedPostgres(home, durable=False, identity=who)


async def execute(url: str, *statements: str) -> object:
    """Run the statements; the first value of the last one."""
    connection = await asyncpg.connect(url, timeout=10)
    try:
        value = None
        for statement in statements:
            value = await connection.fetchval(statement)
        return value
    finally:
        await connection.close()


def half_made(home: Path) -> list[Path]:
    """Data directories that were begun and not finished."""
    return list(home.glob("data.new-*/PG_VERSION"))


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")])}


@asynccontextmanager
async def owner(
    home: Path, before: Sequence[str] = (), python: str = sys.executable, **options: int
) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, str]]]:
    """Another process that owns a server on `home`, and what it told. It is killed at the end if it still lives."""
    process = await asyncio.create_subprocess_exec(
        *before, python, str(OWNER), str(home), cwd="/", env=environment(), **options,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(60):
            line = await process.stdout.readline()
            if not line:
                pytest.fail((await process.stderr.read()).decode())
        yield process, json.loads(line)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("who", IDENTITIES, ids=lambda who: who.name)
async def test_starts_twice_in_a_row_with_its_rows(home: Path, who: Identity) -> None:
    """OPS-2: as whoever we are, the second start finds what the first wrote; no port is open; no process is left."""
    async with server_on(home, who) as server:
        await execute(server.url, "CREATE TABLE t (x int)", "INSERT INTO t VALUES (7)")
        assert await execute(server.url, "SHOW listen_addresses") == ""
    assert not working_in(home / "data")
    async with server_on(home, who) as server:
        assert await execute(server.url, "SELECT x FROM t") == 7
    assert not working_in(home / "data")


async def test_the_way_of_running_may_change(home: Path) -> None:
    """A directory made by one way of running as root is taken over by the other."""
    for who in (*IDENTITIES, *reversed(IDENTITIES)):
        async with server_on(home, who) as server:
            await execute(server.url, "CREATE TABLE IF NOT EXISTS t (x int)")


async def test_survives_kill_9_of_the_server(home: Path) -> None:
    """VER-6: rows committed before kill -9 are there after a restart, twice in a row, on the running object."""
    async with server_on(home) as server:
        await execute(server.url, "CREATE TABLE t (x int)")
        for count in (1, 2):
            await execute(server.url, "INSERT INTO t VALUES (1)")
            os.kill(server.pid, signal.SIGKILL)
            await eventually(lambda: not server.is_running)
            assert await server.ensure_running()
            assert await execute(server.url, "SELECT count(*) FROM t") == count
        assert not await server.ensure_running()


async def test_starts_after_kill_9_of_the_server_and_a_stop(home: Path) -> None:
    """VER-6: a new life begins right after the old server was killed and its owner let go."""
    for _ in range(2):
        async with server_on(home) as server:
            await execute(server.url, "CREATE TABLE IF NOT EXISTS t (x int)")
            os.kill(server.pid, signal.SIGKILL)


async def test_kill_9_of_the_owner_leaves_no_orphan_and_loses_nothing(home: Path) -> None:
    """VER-6: the server goes when its owner is killed, and the next owner can start at once, twice in a row."""
    for count in (1, 2):
        async with owner(home) as (process, told):
            await execute(told["url"], "CREATE TABLE IF NOT EXISTS t (x int)", "INSERT INTO t VALUES (1)")
            process.kill()
            await process.wait()
        async with server_on(home) as server:  # no pause: the old server may still be on its way out
            assert await execute(server.url, "SELECT count(*) FROM t") == count
    async with owner(home) as (process, _):
        process.kill()
        await process.wait()
    await eventually(lambda: not working_in(home / "data"))


def test_only_a_living_server_of_another_is_in_the_way() -> None:
    """VER-6: a process that has ended but still stands in the table, as a server on its way out may, is nobody's."""
    ended = subprocess.Popen(["true"])
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as living:
        assert living.stdin is not None
        assert living.stdout is not None
        living.stdin.write(b"x")
        assert living.stdout.read(1) == b"x"  # it runs: one that is only about to begin has no words yet either
        assert is_foreign(living.pid)
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has taken note of it
    assert not is_foreign(ended.pid)
    ended.wait()
    assert not is_foreign(ended.pid)


async def test_the_second_start_names_the_first(home: Path) -> None:
    """Two owners of one directory: the second fails at once and says which process is in the way."""
    async with owner(home) as (process, _):
        with pytest.raises(EmbeddedPostgresError, match=f"in use by process {process.pid};"):
            await server_on(home).start()
    async with server_on(home) as server:
        assert await execute(server.url, "SELECT 1") == 1


async def test_of_two_that_race_one_wins(home: Path) -> None:
    """Two first starts at the same moment on an empty directory: one runs, the other says so."""
    racers = [server_on(home), server_on(home)]
    results = await asyncio.gather(*[racer.start() for racer in racers], return_exceptions=True)
    assert [type(result) for result in results].count(EmbeddedPostgresError) == 1
    for racer in racers:
        await racer.stop()


async def test_a_path_longer_than_a_socket_address(home: Path) -> None:
    """A deep data directory works although a socket address holds 107 bytes; the substitute leaves no trace."""
    deep = home / ("d" * 80) / ("é" * 40)
    async with server_on(deep) as server:
        assert await execute(server.url, "SELECT 1") == 1
        substitute = server.url.split("host=")[1]
        assert os.path.isdir(substitute)
    assert not os.path.exists(substitute)


async def test_a_stale_pid_that_now_belongs_to_others(home: Path) -> None:
    """After a restart of the machine the old pid may be anybody's: that process is not touched and not in the way."""
    async with server_on(home):
        pass
    bystander = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        stale = f"{bystander.pid}\n{home / 'data'}\n1\n5432\n\n\n1 1\nready\n"
        for lock in (home / "data" / "postmaster.pid", home / ".s.PGSQL.5432.lock"):
            lock.write_text(stale)
        async with server_on(home) as server:
            assert await execute(server.url, "SELECT 1") == 1
        assert bystander.returncode is None
    finally:
        bystander.kill()
        await bystander.wait()


async def test_a_server_that_somebody_else_started_is_not_touched(home: Path) -> None:
    """A server run by hand on our directory is an error that names it, not a victim."""
    async with EmbeddedPostgres(home, durable=False, settings={"cluster_name": "by-hand"}) as other:
        (home / "lock").unlink()
        with pytest.raises(EmbeddedPostgresError, match=f"process {other.pid}\\)"):
            await server_on(home).start()
        assert await execute(other.url, "SELECT 1") == 1


async def test_killed_in_the_middle_of_making_the_cluster(home: Path) -> None:
    """A half-made data directory never counts as one: the next start makes it anew and leaves no leftovers."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(OWNER), str(home), env=environment(), stdout=asyncio.subprocess.DEVNULL
    )
    await eventually(lambda: half_made(home))
    process.kill()
    await process.wait()
    async with server_on(home) as server:
        assert await execute(server.url, "SELECT 1") == 1
    assert not half_made(home)


async def test_a_directory_of_another_version_is_refused(home: Path) -> None:
    """Data of another major version is named and left alone."""
    async with server_on(home):
        pass
    (home / "data" / "PG_VERSION").write_text("17\n")
    with pytest.raises(EmbeddedPostgresError, match="made by PostgreSQL 17"):
        await server_on(home).start()


async def test_a_server_that_cannot_start_says_why(home: Path) -> None:
    """The server's own last words are in the error, and the lock is free afterwards."""
    with pytest.raises(EmbeddedPostgresError, match="no_such_setting"):
        await EmbeddedPostgres(home, durable=False, settings={"no_such_setting": "1"}).start()
    async with server_on(home) as server:
        assert await execute(server.url, "SELECT 1") == 1


async def test_ctrl_c_does_not_reach_the_server(home: Path) -> None:
    """The server is in a session of its own, so that it outlives a Ctrl-C until we have drained."""
    async with server_on(home) as server:
        assert os.getsid(server.pid) != os.getsid(0)


def ordinary_ways() -> dict[str, dict[str, object]]:
    """How this machine lets us be an ordinary user: being one, changing to `nobody`, or in a user namespace."""
    if not IS_ROOT:
        return {"self": {}}
    ways: dict[str, dict[str, object]] = {}
    account = identity.nobody().owner
    assert account is not None
    uid, gid = account
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    proof = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', '']).returncode)"
    for python in (sys.executable, f"/usr/bin/python{version}"):
        command = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", python, "-c", proof]
        try:
            done = subprocess.run(command, capture_output=True, cwd="/", check=False)
        except FileNotFoundError:
            continue
        if done.returncode == 0:
            ways["nobody"] = {"python": python, "before": tuple(command[:4])}
            break
    if (inside := identity.namespace()) is not None:
        ways["namespace"] = {"before": inside.prefix}
    return ways


@pytest.mark.parametrize("way", ordinary_ways().values(), ids=ordinary_ways().keys())
async def test_an_ordinary_user_can(home: Path, way: dict[str, object]) -> None:
    """OPS-1: no root is needed: a process without any privilege owns a server, is killed, and starts again."""
    home.parent.chmod(0o777)
    for _ in range(2):
        async with owner(home, **way) as (process, told):
            assert await execute(told["url"], "SELECT current_user") == "pointsman"
            process.kill()
            await process.wait()
    await eventually(lambda: not working_in(home / "data"))
