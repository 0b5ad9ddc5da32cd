"""Routing with its real peers over loopback, a real PostgreSQL and the studio: what is below the edge."""

import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
from google.protobuf.struct_pb2 import Struct

from libs.host.hosted import Builder
from libs.host.hosting import Host
from libs.host.placement import placement
from libs.rpc.faulting import faults_from_rpc
from pointsman.capacity.v1 import capacity_service_pb2
from pointsman.capacity.v1.capacity_service_pb2_grpc import CapacityServiceStub
from pointsman.health.v1 import health_service_pb2
from pointsman.health.v1.health_service_pb2_grpc import HealthServiceStub
from pointsman.routing.v1 import catalog_service_pb2, routing_service_pb2, task_pb2
from pointsman.routing.v1.catalog_service_pb2_grpc import CatalogServiceStub
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from services.__main__ import BUILDERS
from services.studio.compose import Studio
from services.studio.settings import Render, StudioConfig
from tests.support.waiting import eventually_async

CONTEXTS = ("health", "cost_quote", "capacity", "provider_adapter", "routing")
ENDED = (task_pb2.TASK_STATE_SUCCEEDED, task_pb2.TASK_STATE_FAILED, task_pb2.TASK_STATE_CANCELLED)
CALL_S = 30.0
SEEDANCE = "doubao-seedance-2-0-260128"

log = logging.getLogger(__name__)


def catalog_yaml(keys: Path, urls: Mapping[str, str], slots: Mapping[str, int], **policy: Any) -> str:
    """Video accounts behind one exact model; `slots` by account, in falling priority."""
    rules = {"order": "stable_first", "max_attempts": 2, **policy}
    policy_lines = "".join(f", {name}: {value!r}" for name, value in rules.items())
    channels, supplies, bindings = "", "", ""
    for account, count in slots.items():
        channels += (
            f"  - {{id: {account}-main, adapter: ark, base_url: '{urls[account]}', secret: 'file:{keys}/{account}',"
            " poll_interval_s: 0.2, health: {cooldown_s: 1}, timeouts: {submit_s: 10, poll_s: 5}}\n"
        )
        supplies += (
            f"  - {{id: {account}-main/clip, channel: {account}-main, upstream_model: {SEEDANCE}, kind: video,\n"
            "     capabilities: {duration_s: {min: 4, max: 15}, inputs: {reference_images: 9}},\n"
            f"     limits: {{concurrency: {count}}}, prices: [second], evidence: waived, evidence_reason: test}}\n"
        )
        bindings += f"      - {{supply: {account}-main/clip, tier: exact, priority: {100 - len(bindings)}}}\n"
    return (
        f"version: 1\ncurrency: CNY\nchannels:\n{channels}supplies:\n{supplies}"
        "prices:\n  - {id: second, version: 1, currency: CNY, billing_mode: per_second, rate: '1.00'}\n"
        f"policies:\n  - {{id: stable{policy_lines}}}\n"
        "models:\n  - id: clip\n    kind: video\n    profile: '933'\n    policy: stable\n"
        f"    enabled: true\n    published: true\n    bindings:\n{bindings}"
    )


@dataclass
class Stack:
    """Stubs to everything, and the studio's lab."""

    host: Host
    studio: Studio
    session: aiohttp.ClientSession
    folder: Path
    env: dict[str, str]

    @property
    def routing(self) -> Any:
        """RoutingService."""
        return RoutingServiceStub(self.host.channels.to("routing"))

    @property
    def catalog(self) -> Any:
        """CatalogService."""
        return CatalogServiceStub(self.host.channels.to("routing"))

    async def apply(self, slots: Mapping[str, int], **policy: Any) -> None:
        """Declare accounts with that many slots, and wait until everybody knows them."""
        urls = {account: self.studio.base_url(account) for account in slots}
        for account in slots:
            (self.folder / account).write_text(self.studio.key(account))
        text = catalog_yaml(self.folder, urls, slots, **policy)
        async with faults_from_rpc():
            answer = await self.catalog.Apply(catalog_service_pb2.ApplyRequest(catalog_yaml=text), timeout=CALL_S)
        assert [item.published for item in answer.publications] == [True], answer
        await eventually_async(self._known)

    async def _known(self) -> bool:
        health = HealthServiceStub(self.host.channels.to("health"))
        capacity = CapacityServiceStub(self.host.channels.to("capacity"))
        seen = await health.GetSnapshot(health_service_pb2.GetSnapshotRequest(), timeout=CALL_S)
        levels = await capacity.GetCapacity(capacity_service_pb2.GetCapacityRequest(), timeout=CALL_S)
        return bool(seen.subjects) and bool(levels.subjects)

    async def capacity(self) -> dict[str, Any]:
        """Figures by level id."""
        stub = CapacityServiceStub(self.host.channels.to("capacity"))
        answer = await stub.GetCapacity(capacity_service_pb2.GetCapacityRequest(), timeout=CALL_S)
        return {item.subject.id: item for item in answer.subjects}

    async def health(self) -> dict[str, Any]:
        """Health by id."""
        stub = HealthServiceStub(self.host.channels.to("health"))
        answer = await stub.GetSnapshot(health_service_pb2.GetSnapshotRequest(), timeout=CALL_S)
        return {item.subject.id: item for item in answer.subjects}

    async def submit(self, task_id: str, **given: Any) -> task_pb2.Task:
        """One Task of model `clip`."""
        values = Struct()
        values.update({"prompt": f"a boat {task_id}", "duration_s": 4, **given})
        asked = routing_service_pb2.SubmitTaskRequest(request_id=task_id, tenant="t", model="clip", input=values)
        async with faults_from_rpc():
            return (await self.routing.SubmitTask(asked, timeout=CALL_S)).task

    async def task(self, task_id: str) -> task_pb2.Task:
        """The Task now."""
        asked = routing_service_pb2.GetTaskRequest(task_id=task_id)
        async with faults_from_rpc():
            return (await self.routing.GetTask(asked, timeout=CALL_S)).task

    async def tasks(self) -> list[task_pb2.Task]:
        """All of them."""
        asked = routing_service_pb2.ListTasksRequest(page_size=1000)
        return list((await self.routing.ListTasks(asked, timeout=CALL_S)).tasks)

    async def ended(self, *task_ids: str, within_s: float = 40.0) -> list[task_pb2.Task]:
        """Those Tasks, once all have ended."""

        async def all_ended() -> bool:
            return all([(await self.task(task_id)).state in ENDED for task_id in task_ids])

        await eventually_async(all_ended, within_s)
        return [await self.task(task_id) for task_id in task_ids]

    async def alerts(self, kind: str = "") -> list[Any]:
        """Alerts of a kind."""
        asked = routing_service_pb2.ListAlertsRequest(kind=kind)
        return list((await self.routing.ListAlerts(asked, timeout=CALL_S)).alerts)

    async def lab(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the studio's control surface."""
        async with self.session.request(method, f"{self.studio.url}/lab{path}", json=body) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def script(self, *then: Mapping[str, Any], **match: str) -> None:
        """One fault rule."""
        await self.lab("POST", "/script", {"match": match, "then": list(then)})

    async def submissions(self) -> list[dict[str, Any]]:
        """Every job that the studio has accepted."""
        return (await self.lab("GET", "/ledger"))["submissions"]

    async def restart(self) -> None:
        """Stop the contexts and bring them up again on the same data."""
        await self.host.stop()
        self.host = await started(self.env)


async def started(
    env: Mapping[str, str], builders: Mapping[str, Builder] = BUILDERS, above: tuple[str, ...] = ()
) -> Host:
    """The five contexts at work, and those `above`; whatever was begun is undone if one does not come up."""
    host = Host(placement(env, (*CONTEXTS, *above), available=builders), env, builders)
    try:
        await host.start()
    except BaseException:
        await host.stop()
        raise
    return host


@contextlib.asynccontextmanager
async def stack_over(
    database_url: str,
    folder: Path,
    builders: Mapping[str, Builder] = BUILDERS,
    above: tuple[str, ...] = (),
    **routing: str,
) -> AsyncIterator[Stack]:
    """Everything running. `routing` are settings, for example `ROUTING_WORKER_LEASE_S="3"`."""
    fast = StudioConfig.default().adjusted(queue_s=0.0, render_s=0.2)
    config = replace(fast, render=Render(scale=0.25))
    env = {
        "POINTSMAN_DATABASE_URL": database_url,
        "POINTSMAN_DATA": str(folder / "data"),
        "POINTSMAN_ADMIN": "off",
        "POINTSMAN_DRAIN_S": "3",
        "POINTSMAN_RECONCILE_SETTLE_S": "1",
        **routing,
    }
    (folder / "keys").mkdir()
    async with contextlib.AsyncExitStack() as exits:
        studio = await exits.enter_async_context(Studio(config, folder / "studio"))
        session = await exits.enter_async_context(aiohttp.ClientSession())
        stack = Stack(await started(env, builders, above), studio, session, folder / "keys", env)
        try:
            yield stack
        finally:
            await stack.host.stop()
