"""Wake-ups switched off: nobody is woken, and the scan alone finds everything."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from services.routing.compose import Stores, assemble
from services.routing.domain.task import TaskState
from services.routing.ports import Polled
from services.routing.settings import Settings
from services.routing.store.catalog_memory import MemoryCatalogStore
from services.routing.store.tasks_memory import MemoryTasks
from tests.support.worlds import steered_world
from tests.unit.routing.dispatch_fakes import stage
from tests.unit.routing.dispatch_offers import catalog, supply


class CountingTasks(MemoryTasks):
    """Counts who comes for work, and who calls for a place that has come free."""

    scans = 0
    calls = 0

    async def claim(self, *given: Any) -> Any:
        """See the port."""
        self.scans += 1
        return await super().claim(*given)

    async def wake(self, count: int, now: datetime, looked_by: datetime) -> tuple[int, bool]:
        """See the port. The scan of the lines spares those who have looked lately; a call for a place does not."""
        self.calls += looked_by == now
        return await super().wake(count, now, looked_by)


@pytest.mark.parametrize("hints", [True, False])
async def test_a_release_wakes_who_waits_unless_hints_are_off(hints: bool):
    """ATT-9, CAP-10: a release calls the next one; without hints the scan of the lines finds it, within a second."""
    tasks = CountingTasks()
    play = stage(offers=catalog(supply("a/clip", slots=1)), store=tasks, hints=hints)
    play.provider.polls = [Polled("running")]
    await play.submit("first")
    await play.work()
    await play.submit("second")
    await play.work()
    before = tasks.calls
    while (await play.task("first")).state is not TaskState.SUCCEEDED:
        assert tasks.calls == before
        await play.pass_time(0.05, step_s=0.05)
    assert (tasks.calls > before) is hints
    await play.pass_time(1.0)
    assert (await play.task("second")).state is not TaskState.QUEUED


async def at_rest() -> None:
    """Let everything run that can run while time stands still."""
    for _ in range(200):
        await asyncio.sleep(0)


@pytest.mark.parametrize("hints", [True, False])
async def test_the_bell_has_listeners_unless_hints_are_off(hints: bool):
    """ATT-9: a call that makes work wakes the scans of the composed context at once; without hints none comes before
    its interval."""
    world, clock = steered_world()
    registry, tasks = LoopbackRegistry(), CountingTasks()
    play = stage(store=tasks)
    await play.submit()
    server = RpcServer(registry=registry)
    async with Channels(registry=registry, caller="runs") as channels:
        settings = Settings("memory:", hints=hints)
        context = assemble(Stores(tasks, MemoryCatalogStore()), settings, channels, world)
        for _, add in context.registrations:
            server.add(add)
        await server.start()
        await context.start()
        await at_rest()
        before = tasks.scans
        await RoutingServiceStub(channels.to("routing")).CancelTask(pb.CancelTaskRequest(task_id="t1"), timeout=5)
        await at_rest()
        assert (tasks.scans > before) is hints
        clock.advance(1.0)
        await at_rest()
        assert tasks.scans > before
        await context.stop()
        await server.close()
