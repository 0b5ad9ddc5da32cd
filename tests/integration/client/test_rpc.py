"""The client over gRPC, through the public port with its keys."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from libs.client.faults import Problem, RunUnsuccessful, Unreachable
from libs.client.retrying import Patience
from libs.client.rpc import RpcClient
from libs.client.sending import Means
from libs.faults.fault import Fault
from libs.rpc.address import LOOPBACK, parse
from libs.rpc.admission import KeyAdmission
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.telemetry.metrics import Metrics
from pointsman.runs.v1 import runs_service_pb2
from pointsman.runs.v1.runs_service_pb2_grpc import add_RunsServiceServicer_to_server
from tests.contract.edge.fake_runs import FakeRuns
from tests.contract.edge.house import EdgeHouse, edge_house


class ShakyRuns(FakeRuns):
    """Refuses the first creates, and lets streams break off behind their first event."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[Fault] = []
        self.breaks = 0
        self.cursors: list[int] = []
        self.shaken: set[str] = set()
        self.sent: dict[str, list[Any]] = {}
        """By method that is shaken: the requests that came."""

    def _shake(self, method: str, request: Any) -> None:
        """The first of each shaken method is lost on its way back."""
        sent = self.sent.setdefault(method, [])
        sent.append(request)
        if method in self.shaken and len(sent) == 1:
            raise Fault.of("peer_unavailable")

    async def PauseRun(self, request: Any, context: Any) -> Any:
        """At the second time."""
        self._shake("PauseRun", request)
        return await super().PauseRun(request, context)

    async def SteerRun(self, request: Any, context: Any) -> Any:
        """At the second time."""
        self._shake("SteerRun", request)
        return await super().SteerRun(request, context)

    async def RedriveRun(self, request: Any, context: Any) -> Any:
        """At the second time."""
        if not request.preview:
            self._shake("RedriveRun", request)
        return await super().RedriveRun(request, context)

    async def CreateRun(self, request: Any, context: Any) -> Any:
        """The refusals first."""
        if self.refusals:
            raise self.refusals.pop(0)
        return await super().CreateRun(request, context)

    async def StreamRunEvents(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """One event and a fault, as often as it is to break."""
        self.cursors.append(request.after_sequence)
        if self.breaks:
            self.breaks -= 1
            first = self.events[request.run_id][request.after_sequence]
            yield runs_service_pb2.StreamRunEventsResponse(events=[first])
            raise Fault.of("overloaded")
        async for reply in super().StreamRunEvents(request, context):
            yield reply


@dataclass
class Port:
    """The public port: what stands behind it, and where it is."""

    edge: EdgeHouse
    runs: ShakyRuns
    target: str
    slept: list[float]

    async def client(self, *scopes: str) -> RpcClient:
        """A client of tenant `studio` that loses no time."""
        _, key = await self.edge.key("studio", *scopes)
        return RpcClient(self.target, key, tenant="studio", patience=Patience(tries=4), means=self.means())

    def means(self) -> Means:
        """Means that remember for how long they would have waited."""

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        return Means(sleep, lambda: 0.5, lambda: 0.0)


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[Port]:
    """A server on TCP that asks for keys."""
    async with edge_house(tmp_path) as edge:
        runs, asked = ShakyRuns(), parse("127.0.0.1:0")
        admit = KeyAdmission(edge.channels.to("edge"))
        server = RpcServer(
            (LOOPBACK, asked), registry=LoopbackRegistry(), public=(asked,), admit=admit, metrics=Metrics()
        )
        server.add(lambda s: add_RunsServiceServicer_to_server(runs, s))
        await server.start()
        try:
            yield Port(edge, runs, str(server.bound[asked]), [])
        finally:
            await server.close(0.1)


async def test_a_run_over_grpc(port: Port) -> None:
    """CLIENT-1: created once under one key though it was refused before; followed to its end; its result read."""
    port.runs.refusals = [Fault.of("overloaded", retry_after_ms=2000), Fault.of("governance_backend_down")]
    async with await port.client("runs") as client:
        run = await client.create_run("clip", {"prompt": "a lake"}, labels={"act": "1"})
        (made,) = port.runs.created
        assert (made.tenant, made.model, dict(made.labels)) == ("studio", "clip", {"act": "1"})
        assert made.idempotency_key
        assert port.slept == [2.125, 5.25]
        port.runs.succeed(run.id, "ab" * 32)
        port.runs.breaks = 2
        events = [event async for event in client.events(run.id)]
        assert [event.sequence for event in events] == [1, 2, 3, 4]
        assert port.runs.cursors == [0, 1, 2]
        done = await client.result_of(run.id)
    assert done.status == "succeeded"
    assert done.result is not None
    assert (done.result.artifacts[0].sha256, done.result.degraded) == ("ab" * 32, True)


async def test_what_grpc_refuses(port: Port) -> None:
    """CLIENT-1: permission and what is not there are raised at once; a Run that failed is no success."""
    async with await port.client("invoke") as client:
        with pytest.raises(Problem) as forbidden:
            await client.create_run("clip", {})
        assert (forbidden.value.code, forbidden.value.status) == ("forbidden", 403)
    async with await port.client("runs") as client:
        with pytest.raises(Problem) as missing:
            await client.get_run("none")
        assert (missing.value.code, missing.value.status) == ("not_found", 404)
        run = await client.create_run("clip", {})
        port.runs.fail(run.id, Fault.of("content_rejected", "no"))
        with pytest.raises(RunUnsuccessful) as failed:
            await client.result_of(run.id)
        assert failed.value.run.error is not None
        assert failed.value.run.error.code == "content_rejected"
        with pytest.raises(Problem) as ended:
            await client.cancel_run(run.id)
        assert ended.value.code == "run_terminal"
    assert port.slept == []


async def test_nobody_at_the_port(port: Port) -> None:
    """CLIENT-1: a server that is not there is tried again, within bounds."""
    gone = RpcClient("127.0.0.1:1", "pm_key", tenant="studio", patience=Patience(tries=3), means=port.means())
    async with gone, asyncio.timeout(30):
        with pytest.raises(Unreachable):
            await gone.get_run("R1")
    assert len(port.slept) == 2


async def test_commands_over_grpc(port: Port) -> None:
    """CLIENT-1, RUN-8: a command carries one id however often it is sent; what it answers is read as over HTTP."""
    port.runs.shaken = {"PauseRun", "SteerRun", "RedriveRun"}
    async with await port.client("runs") as client:
        run = await client.create_production({"production": "episode", "nodes": []}, labels={"act": "1"})
        assert (await client.pause_run(run.id, "lunch")).status == "paused"
        steered = await client.steer_run(run.id, "style", {"text": "in blue"})
        assert (steered.steering_event_id, steered.sequence) == ("steering-1", 1)
        assert (steered.nodes, steered.kinds) == (["shots"], ["style", "mood"])
        assert (await client.resume_run(run.id)).status == "running"
        assert (await client.redrive_run(run.id, "main", input={"prompt": "y"})).id == run.id
        reached = await client.preview_redrive(run.id, "main")
    (made,) = port.runs.created
    assert made.production.fields["production"].string_value == "episode"
    for sent in port.runs.sent.values():
        assert len(sent) == 2
        assert len({request.request_id for request in sent}) == 1
        assert sent[0].request_id
    assert reached.run.id == run.id
