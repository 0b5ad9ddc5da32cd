"""The edge and everything below it as two processes that trust certificates alone."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from cli.demo.stage import free_ports
from cli.issuing import Authority
from libs.faults.fault import Fault
from libs.host.placement import START_ORDER
from libs.rpc.address import parse
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.tls import Certificates, Tls
from pointsman.routing.v1 import routing_service_pb2 as routing_pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from tests.e2e.scenery import setting
from tests.support.stack import Setting, SevenProcesses, running

BELOW = tuple(name for name in START_ORDER if name != "edge")
DAYS = 1


class TwoByCertificates(SevenProcesses):
    """`edge` and `below`, over TCP by mutual TLS; `below` has a door for callers with a key."""

    members = ("below", "edge")

    def __init__(self, folder: Path, setting: Setting) -> None:
        super().__init__(folder, setting)
        self._ports = dict(zip(self.members, free_ports(2), strict=True))
        self.certificates = folder / "certificates"
        authority = Authority(self.certificates)
        for member in self.members:
            authority.issue(member, self.contexts_of(member), DAYS)

    def contexts_of(self, member: str) -> tuple[str, ...]:
        return BELOW if member == "below" else ("edge",)

    def _socket(self, member: str) -> str:
        return f"127.0.0.1:{self._ports[member]}"

    def _spawn(self, name: str, arguments: list[str], env: Mapping[str, str]) -> None:
        own = {"CERT": f"{name}.pem", "KEY": f"{name}.key", "CA": "ca.pem"} if name in self.members else {}
        tls = {f"POINTSMAN_TLS_{part}": str(self.certificates / file) for part, file in own.items()}
        public = ["--grpc", self.grpc] if name == "below" else []
        super()._spawn(name, [*arguments, *public], {**env, **tls})

    def tls(self, *contexts: str) -> Tls:
        """A certificate of the same authority for these contexts."""
        made = Authority(self.certificates).issue("visitor", contexts, DAYS)
        files = (made, made.with_suffix(".key"), self.certificates / "ca.pem")
        return Tls(Certificates(*(file.read_bytes() for file in files)))


@pytest.fixture(scope="module")
def started() -> Iterator[TwoByCertificates]:
    """Two processes of our own."""
    with asyncio.Runner() as runner:
        context = running(TwoByCertificates, setting())
        stack = runner.run(context.__aenter__())
        assert isinstance(stack, TwoByCertificates)
        yield stack
        runner.run(context.__aexit__(None, None, None))
        assert stack.said == []


@pytest.fixture
async def stack(started: TwoByCertificates) -> AsyncIterator[TwoByCertificates]:
    """The two with sessions open."""
    async with started.visit():
        yield started


async def refusal(stack: TwoByCertificates, *contexts: str) -> Fault:
    """What routing says to `ResolveAttempt` of the holder of a certificate for these contexts."""
    address = {"routing": parse(stack.address_of("pointsman.routing.v1.RoutingService"))}
    async with Channels(address, caller=contexts[0], tls=stack.tls(*contexts)) as channels:
        stub: Any = RoutingServiceStub(channels.to("routing"))
        with pytest.raises(Fault) as caught:
            async with faults_from_rpc():
                await stub.ResolveAttempt(routing_pb.ResolveAttemptRequest(attempt_id="none"), timeout=10)
    return caught.value


async def test_two_processes_serve_by_certificates(stack: TwoByCertificates) -> None:
    """AUTH-3: a Run is served; routing refuses who has no certificate, and a context that may not call the method."""
    run = await stack.api.finished(await stack.api.post_run("steady", "a lake by certificates"))
    assert run["status"] == "succeeded"
    assert (await refusal(stack, "provider_adapter")).code == "forbidden"
    assert (await refusal(stack, "edge")).code == "validation_failed"  # routing itself has looked at it
    async with aio.insecure_channel(stack.address_of("pointsman.routing.v1.RoutingService")) as plain:
        with pytest.raises(aio.AioRpcError) as caught:
            await RoutingServiceStub(plain).GetTask(routing_pb.GetTaskRequest(task_id="none"), timeout=10)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def outcome(stack: TwoByCertificates, key: str) -> grpc.StatusCode:
    """How an operator's method ends for the holder of that key at the public port."""
    metadata = [("authorization", f"Bearer {key}")] if key else []
    async with aio.insecure_channel(stack.grpc) as plain:
        try:
            await RoutingServiceStub(plain).ListAlerts(routing_pb.ListAlertsRequest(), timeout=10, metadata=metadata)
        except aio.AioRpcError as error:
            return error.code()
    return grpc.StatusCode.OK


async def test_operators_come_in_by_key(stack: TwoByCertificates) -> None:
    """AUTH-3: operator methods need the operator's scope over gRPC too, where the edge is in another process."""
    made = await stack.api.call("POST", "/v1/operator/keys", body={"tenant": "reader", "scopes": ["runs"]})
    assert await outcome(stack, "") is grpc.StatusCode.UNAUTHENTICATED
    assert await outcome(stack, made["key"]) is grpc.StatusCode.PERMISSION_DENIED
    assert await outcome(stack, stack.key) is grpc.StatusCode.OK
