"""How many Tasks a second go through the whole durable chain, and how soon a lone one is at its provider (PRF-2).

    python -m tests.bench.bench_dispatch [--tasks 3000] [--flights 64] [--lone 200] [--json] [--profile FILE]

One process, as `pointsman up` hosts them: health, cost_quote, capacity and routing over the in-process channel with
every interceptor, on a real PostgreSQL that waits for the disk. Only provider_adapter is stood in for, by a servicer
that answers at once, so that what is measured is ours. A Task is submitted by gRPC, claimed, decided (all steps, a
quote, reasons written), reserved (nine gates), its intent committed, submitted, settled, its outcome told to health
with its event, its slot given back: all durable. Beside it, on the same server in the same run, procrastinate defers as
many jobs that do nothing and works them off, as far as it is installed (`make peers`). A lone Task commits four times
before its provider is called (the Task, its claim, its slot, its intent), so beside its latency stands the disk's.
"""

import argparse
import asyncio
import contextlib
import cProfile
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import asyncpg
import uvloop

from libs.host.embedded_postgres import EmbeddedPostgres
from libs.host.hosted import ComposedContext, Context
from libs.host.hosting import Host
from libs.host.placement import placement
from libs.kernel.world import World
from pointsman.provider_adapter.v1 import provider_pb2
from pointsman.provider_adapter.v1 import provider_service_pb2 as provider
from pointsman.provider_adapter.v1.provider_service_pb2_grpc import (
    ProviderServiceServicer,
    add_ProviderServiceServicer_to_server,
)
from pointsman.routing.v1 import catalog_service_pb2, routing_service_pb2
from pointsman.routing.v1.catalog_service_pb2_grpc import CatalogServiceStub
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from services.__main__ import BUILDERS
from tests.support.processes import cpu_seconds, tree

CONTEXTS = ("health", "cost_quote", "capacity", "provider_adapter", "routing")
CALL_S = 60.0
LOOK_S = 0.02
CATALOG = """
version: 1
currency: CNY
channels:
  - {id: a-main, adapter: instant, base_url: 'http://127.0.0.1:1', secret: 'env:NONE', limits: {concurrency: 1000}}
  - {id: b-main, adapter: instant, base_url: 'http://127.0.0.1:1', secret: 'env:NONE', limits: {concurrency: 1000}}
supplies:
  - {id: a-main/clip, channel: a-main, upstream_model: clip, kind: video, limits: {concurrency: 1000, rpm: 1000000,
     tpm: 1000000000}, prices: [second], evidence: waived, evidence_reason: bench}
  - {id: b-main/clip, channel: b-main, upstream_model: clip, kind: video, limits: {concurrency: 1000, rpm: 1000000,
     tpm: 1000000000}, prices: [second], evidence: waived, evidence_reason: bench}
prices:
  - {id: second, version: 1, currency: CNY, billing_mode: per_second, rate: '1.00'}
policies:
  - {id: stable, order: stable_first}
models:
  - id: clip
    kind: video
    profile: plain
    policy: stable
    enabled: true
    published: true
    bindings: [{supply: a-main/clip, tier: exact, priority: 1}, {supply: b-main/clip, tier: exact, priority: 0}]
"""


class InstantProvider(ProviderServiceServicer):
    """Delivers within the call and remembers when it was called."""

    def __init__(self) -> None:
        self.called: dict[str, float] = {}
        self.last = ""

    async def Submit(self, request: provider.SubmitRequest, context: Any) -> provider.SubmitResponse:
        """Done."""
        self.called[request.job.client_token] = time.perf_counter()
        self.last = request.job.client_token
        return provider.SubmitResponse(provider_task_id="instant", result=provider_pb2.ProviderResult())

    async def CheckSecrets(self, request: provider.CheckSecretsRequest, context: Any) -> provider.CheckSecretsResponse:
        """Every secret can be read."""
        return provider.CheckSecretsResponse()

    async def ListAdapters(self, request: provider.ListAdaptersRequest, context: Any) -> provider.ListAdaptersResponse:
        """One dialect."""
        return provider.ListAdaptersResponse(adapters=[provider_pb2.Adapter(name="instant")])


@contextlib.asynccontextmanager
async def chain(url: str, folder: Path, instant: InstantProvider) -> AsyncIterator[tuple[Host, Any]]:
    """Everything at work over `instant`, the catalogue published; the host and a stub to routing."""

    def build(env: Mapping[str, str], channels: Any, world: World) -> Context:
        add = lambda server: add_ProviderServiceServicer_to_server(instant, server)  # noqa: E731 # one registration
        return ComposedContext("provider_adapter", (("pointsman.provider_adapter.v1.ProviderService", add),))

    builders = {**BUILDERS, "provider_adapter": build}
    env = {"POINTSMAN_DATABASE_URL": url, "POINTSMAN_DATA": str(folder / "data"), "POINTSMAN_ADMIN": "off"}
    host = Host(placement(env, CONTEXTS, available=builders), env, builders)
    try:
        await host.start()
        catalog = CatalogServiceStub(host.channels.to("routing"))
        answer = await catalog.Apply(catalog_service_pb2.ApplyRequest(catalog_yaml=CATALOG), timeout=CALL_S)
        assert [item.published for item in answer.publications] == [True], answer
        yield host, RoutingServiceStub(host.channels.to("routing"))
    finally:
        await host.stop()


def asked(task_id: str) -> routing_service_pb2.SubmitTaskRequest:
    """One Task."""
    request = routing_service_pb2.SubmitTaskRequest(request_id=task_id, tenant="bench", model="clip")
    request.input.update({"prompt": "a boat on a lake", "duration_s": 4})
    return request


async def throughput(
    server: EmbeddedPostgres, routing: Any, watcher: Any, tasks: int, flights: int, run: str
) -> dict[str, float]:
    """From the first submission to the end of the last Task, `flights` submitters at once."""
    numbers = iter(range(tasks))

    async def submitter() -> None:
        for number in numbers:
            await routing.SubmitTask(asked(f"{run}-{number}"), timeout=CALL_S)

    began, cpu, database = time.perf_counter(), time.process_time(), cpu_seconds(tree(server.pid))
    await asyncio.gather(*(submitter() for _ in range(flights)))
    submitted = time.perf_counter() - began
    await ended(watcher, run, tasks)
    took = time.perf_counter() - began
    return {
        "tasks_per_s": tasks / took,
        "submitted_per_s": tasks / submitted,
        "python_cpu_ms_per_task": (time.process_time() - cpu) / tasks * 1000,
        "database_cpu_ms_per_task": (cpu_seconds(tree(server.pid)) - database) / tasks * 1000,
    }


async def ended(watcher: Any, run: str, tasks: int) -> None:
    """Return when all Tasks of the run have succeeded and nothing is owed to health."""
    query = (
        "SELECT (SELECT count(*) FROM routing.tasks WHERE id LIKE $1 || '-%' AND state = 'succeeded')"
        " - (SELECT count(*) FROM routing.attempts WHERE report_pending)"
    )
    while await watcher.fetchval(query, run) < tasks:  # noqa: ASYNC110 # the database of another process tells, no event of ours
        await asyncio.sleep(LOOK_S)


async def lone(routing: Any, instant: InstantProvider, watcher: Any, tasks: int) -> dict[str, float]:
    """Milliseconds from the call of SubmitTask to the call of the provider, one Task at a time."""
    took = []
    for number in range(tasks):
        began = time.perf_counter()
        before = len(instant.called)
        await routing.SubmitTask(asked(f"lone-{number}"), timeout=CALL_S)
        while len(instant.called) == before:  # noqa: ASYNC110 # an event would be set a turn later than the call
            await asyncio.sleep(0)
        took.append((instant.called[instant.last] - began) * 1000)
        await ended(watcher, f"lone-{number}", 0)
        await asyncio.sleep(0.005)
    took.sort()
    return {"p50_ms": statistics.median(took), "p99_ms": took[int(len(took) * 0.99)]}


async def bare_commit(connection: Any, times: int) -> dict[str, float]:
    """Milliseconds of one row and its commit, one after the other: what the disk makes of every durable step."""
    await connection.execute("CREATE TABLE bare (id integer PRIMARY KEY)")
    took = []
    for number in range(times):
        began = time.perf_counter()
        await connection.execute("INSERT INTO bare VALUES ($1)", number)
        took.append((time.perf_counter() - began) * 1000)
    return {"p50_ms": statistics.median(took)}


async def procrastinate_no_ops(url: str, jobs: int, flights: int) -> float:
    """Jobs a second of procrastinate, from the first deferral to the last end; 0 where it is not installed."""
    try:
        import procrastinate
    except ImportError:
        return 0.0
    ended = asyncio.Event()
    left = jobs
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, max_size=16))

    @app.task(name="nothing")
    async def nothing() -> None:
        nonlocal left
        left -= 1
        if not left:
            ended.set()

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        worker = asyncio.ensure_future(app.run_worker_async(concurrency=flights, install_signal_handlers=False))
        numbers = iter(range(jobs))

        async def submitter() -> None:
            for _ in numbers:
                await nothing.defer_async()

        began = time.perf_counter()
        await asyncio.gather(*(submitter() for _ in range(min(flights, 16))))
        await ended.wait()
        took = time.perf_counter() - began
        worker.cancel()
        await asyncio.wait([worker])
    return jobs / took


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Every row."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="pointsman-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        async with EmbeddedPostgres(folder / "pg") as server:
            instant = InstantProvider()
            watcher = await asyncpg.connect(server.url)
            async with chain(server.url, folder, instant) as (_, routing):
                await throughput(server, routing, watcher, 200, 16, "warm")
                figures["bare commit"] = await bare_commit(watcher, options.lone)
                figures["lone"] = await lone(routing, instant, watcher, options.lone)
                profile = cProfile.Profile() if options.profile else None
                if profile:
                    profile.enable()
                figures["chain"] = await throughput(server, routing, watcher, options.tasks, options.flights, "load")
                if profile:
                    profile.disable()
                    profile.dump_stats(options.profile)
            await watcher.close()
            figures["procrastinate"] = {
                "no_ops_per_s": await procrastinate_no_ops(server.url, options.tasks // 2, options.flights)
            }
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Durable dispatch through the whole chain.")
    parser.add_argument("--tasks", type=int, default=3000)
    parser.add_argument("--flights", type=int, default=64)
    parser.add_argument("--lone", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--profile", default="")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        figures = runner.run(measure(options))
    if options.json:
        print(json.dumps(figures))
        return
    for row, values in figures.items():
        for name, value in values.items():
            print(f"{row:14} {name:24} {value:10,.2f}")


if __name__ == "__main__":
    main()
