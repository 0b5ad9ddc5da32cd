"""Processes of toy contexts: up, at work, down; in one process and in several; killed in between."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from libs.host.cluster import server_pid, working_in
from libs.host.hosted import ComposedContext
from libs.host.hosting import Host
from libs.host.placement import placement
from pointsman.health.v1 import health_service_pb2, health_service_pb2_grpc
from tests.integration.host.toys import HEALTH, toys
from tests.support.postgres import passable_folder
from tests.support.waiting import eventually

TOYS = Path(__file__).with_name("toys.py")
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def data() -> Iterator[Path]:
    """A data directory with a short path, for sockets."""
    with passable_folder() as folder:
        yield folder / "data"


class Process:
    """A running process of toys."""

    def __init__(self, process: asyncio.subprocess.Process, ready_file: Path, story: Path) -> None:
        self.process = process
        self.ready_file = ready_file
        self._story = story

    @property
    def story(self) -> list[str]:
        return self._story.read_text().splitlines() if self._story.exists() else []

    def ready(self) -> dict[str, Any]:
        return json.loads(self.ready_file.read_text())

    @property
    def target(self) -> str:
        """The public gRPC address that was found for port 0."""
        return self.ready()["listening"]["dns:///127.0.0.1:0"]

    async def until_ready(self) -> None:
        await eventually(lambda: self.ready_file.exists() or self.process.returncode is not None, within_s=60)
        assert self.process.returncode is None, (await self.process.stderr.read()).decode()

    async def ended(self) -> int:
        async with asyncio.timeout(60):
            await self.process.communicate()
        return self.process.returncode


@asynccontextmanager
async def started(data: Path, *arguments: str, name: str = "toys", **env: str) -> AsyncIterator[Process]:
    """A process of toys over `data`; killed at the end if it still lives."""
    data.mkdir(parents=True, exist_ok=True)
    ready_file, story = data / f"{name}.ready", data / f"{name}.story"
    words = [str(TOYS), str(story), *arguments, "--data", str(data), "--ready-file", str(ready_file)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'libs' / 'gen'}", **env},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield Process(process, ready_file, story)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def snapshot(target: str) -> object:
    async with aio.insecure_channel(target) as channel:
        stub = health_service_pb2_grpc.HealthServiceStub(channel)
        return await stub.GetSnapshot(health_service_pb2.GetSnapshotRequest(), timeout=10)


async def outcome(target: str) -> grpc.StatusCode:
    """How a call ends."""
    try:
        await snapshot(target)
    except aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_order_of_a_life(data: Path) -> None:
    """OPS-4: migrations, then starts from the leaves up, then readiness; stops from the top down."""
    story: list[str] = []
    env = {"POINTSMAN_GRPC": "127.0.0.1:0", "POINTSMAN_DATABASE_URL": "memory:", "POINTSMAN_DATA": str(data)}

    async def before_ready(host: Host) -> None:
        target = next(str(found) for asked, found in host.bound.items() if asked.port == 0 and asked.host)
        async with aio.insecure_channel(target) as channel:
            status = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=HEALTH))
        assert status.status == health_pb2.HealthCheckResponse.NOT_SERVING
        story.append("before ready")

    builders = toys(story.append)
    host = Host(placement(env, available=builders), env, builders, before_ready=(before_ready,))
    try:
        await host.start()
        story.append("ready")
        target = next(str(found) for asked, found in host.bound.items() if asked.host)
        async with aio.insecure_channel(target) as channel:
            status = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=HEALTH))
        assert status.status == health_pb2.HealthCheckResponse.SERVING
    finally:
        await host.stop()
    assert [line for line in story if not line.startswith("tick")] == [
        "migrate health", "migrate routing", "migrate runs",
        "start health", "start routing", "start runs",
        "before ready", "ready",
        "stop runs", "stop routing", "stop health",
    ]  # fmt: skip
    assert story.index("tick health") > story.index("start health")


async def test_a_failed_start_is_undone(data: Path) -> None:
    """A context that cannot start takes nothing with it: those that were built are stopped, the error arrives."""
    story: list[str] = []
    env = {
        "POINTSMAN_GRPC": "127.0.0.1:0", "POINTSMAN_DATABASE_URL": "memory:", "POINTSMAN_DATA": str(data),
        "TOY_BREAKS": "routing",
    }  # fmt: skip
    builders = toys(story.append)
    host = Host(placement(env, available=builders), env, builders)
    with pytest.raises(OSError, match="routing cannot start"):
        await host.start()
    await host.stop()
    assert [line for line in story if line.startswith("st")] == [
        "start health", "stop runs", "stop routing", "stop health",
    ]  # fmt: skip


class Door(ComposedContext):
    """A context with a door of its own."""

    story: list[str]

    def leave(self) -> None:
        self.story.append("leave")

    async def stop(self) -> None:
        self.story.append("stop")
        await super().stop()


async def test_a_context_with_a_door_says_that_it_leaves_before_anything_closes(data: Path) -> None:
    """OPS-4: balancers are told first; then calls are drained, and only then the door is closed."""
    story: list[str] = []
    env = {"POINTSMAN_GRPC": "127.0.0.1:0", "POINTSMAN_DATABASE_URL": "memory:", "POINTSMAN_DATA": str(data)}

    def build(env: Any, channels: Any, world: Any) -> Door:
        door = Door("runs")
        door.story = story
        return door

    builders = {**toys(lambda _: None), "runs": build}
    host = Host(placement(env, available=builders), env, builders)
    await host.start()
    assert story == []
    await host.stop()
    assert story == ["leave", "stop"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_process_drains_and_exits_0(data: Path, number: signal.Signals) -> None:
    """OPS-4: on SIGTERM and on Ctrl-C: serving over TCP on an embedded database, drained, exit 0, nothing left."""
    async with started(data, "--grpc", "127.0.0.1:0") as toy:
        await toy.until_ready()
        target = toy.target
        assert await snapshot(target) == health_service_pb2.GetSnapshotResponse()
        toy.process.send_signal(number)
        assert await toy.ended() == 0
        assert not toy.ready_file.exists()
        assert toy.story[-3:] == ["stop runs", "stop routing", "stop health"]
    assert not working_in(data / "postgres" / "data")


async def test_kill_9_and_again(data: Path) -> None:
    """VER-6: after kill -9 of the whole process the next one starts on the same data, twice in a row."""
    for _ in range(2):
        async with started(data, "--grpc", "127.0.0.1:0") as toy:
            toy.ready_file.unlink(missing_ok=True)
            await toy.until_ready()
            target = toy.target
            await snapshot(target)
            toy.process.kill()
            await toy.ended()
    await eventually(lambda: not working_in(data / "postgres" / "data"))


async def test_a_killed_database_comes_back(data: Path) -> None:
    """VER-6: kill -9 of the embedded database alone: calls are unavailable for a moment, then served again."""
    async with started(data, "--grpc", "127.0.0.1:0") as toy:
        await toy.until_ready()
        place = data / "postgres" / "data"
        first = server_pid(place)
        os.kill(first, signal.SIGKILL)
        codes = set()
        async with asyncio.timeout(30):
            while server_pid(place) in (first, None) or grpc.StatusCode.OK not in codes:
                codes.add(await outcome(toy.target))
        assert codes <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}


async def test_two_processes_over_a_socket(data: Path, pg_empty_url: str) -> None:
    """OPS-2: health in a process of its own on a Unix socket, runs in another; only settings differ."""
    socket = f"unix:{data / 'health.sock'}"
    env = {"POINTSMAN_DATABASE_URL": pg_empty_url, "PEER_HEALTH": socket}
    async with AsyncExitStack() as stack:
        lower = await stack.enter_async_context(started(data, "health", name="health", **env))
        await lower.until_ready()
        assert lower.ready()["contexts"] == ["health"]
        upper = await stack.enter_async_context(started(data, "runs", name="runs", **env))
        await upper.until_ready()
        assert "start runs" in upper.story
        assert "start health" not in upper.story
        assert await snapshot(socket) == health_service_pb2.GetSnapshotResponse()
        for toy in (upper, lower):
            toy.process.terminate()
            assert await toy.ended() == 0


def wrong_starts() -> list[tuple[list[str], dict[str, str], int, str]]:
    return [
        (["nonsense"], {}, 2, "there is no context 'nonsense'"),
        ([], {"PEER_HEALTH": "nonsense"}, 2, "PEER_HEALTH"),
        ([], {"POINTSMAN_DATABASE_URL": "mysql://u:hidden@h/d"}, 2, "POINTSMAN_DATABASE_URL begins with mysql;"),
        (
            ["health"],
            {"POINTSMAN_DATABASE_URL": "postgresql://u@/d?host=/nonexistent"},
            1,
            "database cannot be reached",
        ),
        (["--grpc", "192.0.2.1:1"], {"POINTSMAN_DATABASE_URL": "memory:"}, 1, "cannot listen on dns:///192.0.2.1:1"),
    ]


@pytest.mark.parametrize("arguments, env, code, words", wrong_starts())
async def test_a_start_that_cannot_be(
    data: Path, arguments: list[str], env: dict[str, str], code: int, words: str
) -> None:
    """OPS-8: a wrong setting ends the process with words about that setting and no traceback."""
    async with started(data, *arguments, **env) as toy:
        async with asyncio.timeout(60):
            output, errors = await toy.process.communicate()
        assert toy.process.returncode == code
        assert words in errors.decode()
        assert "Traceback" not in errors.decode()
        assert "hidden" not in errors.decode()
        assert output == b""


async def test_a_second_signal_does_not_wait(data: Path) -> None:
    """A drain that takes too long for an operator ends with a second signal."""
    async with started(data, "--grpc", "127.0.0.1:0", POINTSMAN_DRAIN_LAG_S="3600") as toy:
        await toy.until_ready()
        toy.process.terminate()
        await eventually(lambda: not toy.ready_file.exists())
        toy.process.terminate()
        assert await toy.ended() == 128 + signal.SIGTERM
    await eventually(lambda: not working_in(data / "postgres" / "data"))
