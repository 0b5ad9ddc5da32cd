"""Routing over fakes, its history in memory, with the real cost_quote behind its own stub: all over loopback."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub, add_RoutingServiceServicer_to_server
from services.cost_quote.compose import assemble
from services.cost_quote.store.memory import MemoryPriceBooks
from services.routing.app.perform_step import perform_step
from services.routing.app.work_queue import WorkQueue
from services.routing.domain.catalog import Catalog, Price
from services.routing.domain.rounds import RoundOutcome, SelectionRound
from services.routing.peers.quotes import RemoteQuotes
from services.routing.ports import Lane, Write
from services.routing.servicer.routing import RoutingServicer
from tests.support.worlds import SteeredClock
from tests.unit.routing.call_stage import call_stage
from tests.unit.routing.dispatch_fakes import Stage, stage

CALL_S = 20.0


@dataclass
class House:
    """A stub whose failures are Faults, and the stage behind it."""

    play: Stage
    stub: Any

    async def call(self, method: str, request: Any) -> Any:
        """One call."""
        async with faults_from_rpc():
            return await getattr(self.stub, method)(request, timeout=CALL_S)

    async def refused(self, method: str, request: Any) -> Fault:
        """The Fault of a call."""
        with pytest.raises(Fault) as caught:
            await self.call(method, request)
        return caught.value

    async def rounds(self, task_id: str) -> Any:
        """The replay of every round."""
        return (await self.call("ReplaySelection", pb.ReplaySelectionRequest(task_id=task_id))).rounds


def price(price_id: str, rate: str, currency: str = "CNY") -> Price:
    """A rule of so much a second."""
    spec = {"id": price_id, "version": 1, "currency": currency, "billing_mode": "per_second", "rate": rate}
    return Price(price_id, 1, 1, currency, "per_second", spec)


async def keep_round(home: House, task_id: str, record: str) -> None:
    """One more round of a Task that is at work, with a record that selection has not made."""
    store, now = home.play.desk.store, home.play.clock.now()
    task = await store.claim_one(task_id, "somebody", now, now)
    assert task is not None
    made = SelectionRound(task_id, task.rounds + 1, now, RoundOutcome.RESERVED, record)
    await store.save(Write(task, replace(task, rounds=task.rounds + 1), now, (made,)))


@asynccontextmanager
async def house(offers: Catalog) -> AsyncIterator[House]:
    """The house with this catalogue, its prices told to cost_quote."""
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    for _, add_to_server in assemble(MemoryPriceBooks(), SteeredClock()).registrations:
        server.add(add_to_server)
    async with Channels(registry=registry, caller="routing") as channels:
        play = _with_quotes(stage(offers=offers), RemoteQuotes(channels.to("cost_quote"), CALL_S))
        servicer = RoutingServicer(play.desk, call_stage().desk)
        server.add(lambda target: add_RoutingServiceServicer_to_server(servicer, target))
        await server.start()
        await play.desk.quotes.apply_prices(offers)
        yield House(play, RoutingServiceStub(channels.to("routing")))
    await server.close()


def _with_quotes(play: Stage, quotes: RemoteQuotes) -> Stage:
    desk = replace(play.desk, quotes=quotes)
    queues = [WorkQueue(desk, lane, 64, perform_step) for lane in (Lane.DISPATCH, Lane.FOLLOW)]
    return replace(play, desk=desk, dispatch=queues[0], follow=queues[1])
