"""The contexts below the edge as a process of their own, killed in the middle of a burst."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
from google.protobuf.struct_pb2 import Struct

from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from pointsman.routing.v1 import catalog_service_pb2, routing_service_pb2, task_pb2
from pointsman.routing.v1.catalog_service_pb2_grpc import CatalogServiceStub
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from services.studio.compose import Studio
from services.studio.settings import Render, StudioConfig
from tests.integration.routing.stack import CALL_S, CONTEXTS, ENDED, catalog_yaml
from tests.support.waiting import eventually, eventually_async

SLOTS = {"aurora": 5, "boreal": 8}


@contextlib.asynccontextmanager
async def contexts(env: Mapping[str, str], ready: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """The five contexts in one process, ready; killed at the end of the block."""
    ready.unlink(missing_ok=True)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services", *CONTEXTS, env=dict(env), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await eventually(ready.exists, 60)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def test_a_stack_that_is_killed_in_a_burst_submits_nothing_twice(pg_url: str, tmp_path: Path):
    """ATT-5, ATT-7: after kill -9 and a new start every Task comes to an honest end; no token was submitted twice, and
    the studio's ledger holds exactly the Attempts that were taken."""
    socket, ready = tmp_path / "routing.sock", tmp_path / "ready"
    env = {
        "PATH": "/usr/bin:/bin",
        "POINTSMAN_DATABASE_URL": pg_url,
        "POINTSMAN_DATA": str(tmp_path / "data"),
        "POINTSMAN_ADMIN": "off",
        "POINTSMAN_READY_FILE": str(ready),
        "POINTSMAN_RECONCILE_SETTLE_S": "1",
        "LISTEN_ROUTING": f"unix:{socket}",
        "ROUTING_WORKER_LEASE_S": "3",
        "ROUTING_HEARTBEAT_S": "0.8",
    }
    config = replace(StudioConfig.default().adjusted(queue_s=0.0, render_s=0.5), render=Render(scale=0.25))
    peers = {"PEER_ROUTING": f"unix:{socket}"}
    channels = Channels.from_env(peers, registry=LoopbackRegistry(), caller="runs")
    desk = Channels.from_env(peers, registry=LoopbackRegistry(), caller="edge")
    async with channels, desk, Studio(config, tmp_path / "studio") as studio, aiohttp.ClientSession() as session:
        names = [f"t{number:02}" for number in range(16)]
        async with contexts(env, ready):
            await _apply(desk, studio, tmp_path)
            for name in names:
                await _submit(channels, name)

            async def begun() -> bool:
                return len(await _ledger(session, studio)) >= 4

            await eventually_async(begun)
        async with contexts(env, ready):

            async def all_ended() -> bool:
                tasks = await _tasks(channels)
                return len(tasks) == 16 and all(task.state in ENDED for task in tasks)

            await eventually_async(all_ended, 90)
            tasks = await _tasks(channels)
            taken = [item["client_token"] for item in await _ledger(session, studio)]
    assert {task.state for task in tasks} == {task_pb2.TASK_STATE_SUCCEEDED}, [task.failure for task in tasks]
    assert len(taken) == len(set(taken))
    accepted = {item.client_token for task in tasks for item in task.attempts if item.provider_task_id}
    assert accepted == set(taken)


async def _apply(channels: Channels, studio: Studio, folder: Path) -> None:
    urls = {account: studio.base_url(account) for account in SLOTS}
    for account in SLOTS:
        (folder / account).write_text(studio.key(account))
    asked = catalog_service_pb2.ApplyRequest(catalog_yaml=catalog_yaml(folder, urls, SLOTS))
    answer = await CatalogServiceStub(channels.to("routing")).Apply(asked, timeout=CALL_S, wait_for_ready=True)
    assert answer.publications[0].published


async def _submit(channels: Channels, name: str) -> None:
    given = Struct()
    given.update({"prompt": f"a boat {name}", "duration_s": 4})
    asked = routing_service_pb2.SubmitTaskRequest(request_id=name, tenant="t", model="clip", input=given)
    await RoutingServiceStub(channels.to("routing")).SubmitTask(asked, timeout=CALL_S)


async def _tasks(channels: Channels) -> list[task_pb2.Task]:
    asked = routing_service_pb2.ListTasksRequest(page_size=100)
    stub = RoutingServiceStub(channels.to("routing"))
    return list((await stub.ListTasks(asked, timeout=CALL_S, wait_for_ready=True)).tasks)


async def _ledger(session: aiohttp.ClientSession, studio: Studio) -> list[dict[str, Any]]:
    async with session.get(f"{studio.url}/lab/ledger") as answer:
        return (await answer.json())["submissions"]
