"""What an open port says about itself: health, reflection, channelz. Sockets only; there is no door in-process."""

import os
import stat
from collections.abc import AsyncIterator

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc import aio
from grpc_channelz.v1 import channelz_pb2, channelz_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from libs.rpc.address import parse
from libs.rpc.channel import open_channel
from libs.rpc.reflection import V1, V1ALPHA
from libs.rpc.server import RpcServer
from tests.support.generated_echo import SERVICE
from tests.support.hop import Hops

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture(params=["unix", "tcp"])
async def hops(request: pytest.FixtureRequest) -> AsyncIterator[Hops]:
    """Servers with a door that strangers can knock at."""
    opened = Hops(request.param)
    yield opened
    await opened.close()


async def test_health_is_told_by_service_and_as_a_whole(hops: Hops):
    """OPS-4: gRPC health per service name; probes need no deadline of ours."""
    hop = await hops.open()
    async with open_channel(hop.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for name in ("", SERVICE):
            assert (await stub.Check(health_pb2.HealthCheckRequest(service=name))).status == SERVING
        with pytest.raises(aio.AioRpcError) as failed:
            await stub.Check(health_pb2.HealthCheckRequest(service="no.such.Service"))
        assert failed.value.code() is grpc.StatusCode.NOT_FOUND
        await hop.server.set_serving(False)
        assert (await stub.Check(health_pb2.HealthCheckRequest(service=SERVICE))).status == NOT_SERVING


async def test_a_watcher_of_health_sees_the_drain_and_does_not_hold_it(hops: Hops):
    """OPS-4: drain begins with not serving; a stream that never ends by itself costs no grace period."""
    hop = await hops.open()
    async with open_channel(hop.address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=SERVICE))
        assert (await watch.read()).status == SERVING
        assert await hop.server.drain(grace_s=3600, stream_grace_s=3600)
        assert (await watch.read()).status == NOT_SERVING


@pytest.mark.parametrize("version", [V1, V1ALPHA])
async def test_reflection_lists_and_describes_every_service(hops: Hops, version: str):
    """OPS-4: reflection, v1 and v1alpha, lists what the port serves and describes each of it, itself too."""
    hop = await hops.open()
    async with open_channel(hop.address) as channel:
        ask = channel.stream_stream(
            f"/{version}/ServerReflectionInfo",
            reflection_pb2.ServerReflectionRequest.SerializeToString,
            reflection_pb2.ServerReflectionResponse.FromString,
        )
        listing = await ask(iter([reflection_pb2.ServerReflectionRequest(list_services="")])).read()
        listed = {service.name for service in listing.list_services_response.service}
        assert listed == {SERVICE, "grpc.health.v1.Health", V1, V1ALPHA}
        for name in listed:
            question = reflection_pb2.ServerReflectionRequest(file_containing_symbol=name)
            answer = await ask(iter([question])).read()
            files = [
                descriptor_pb2.FileDescriptorProto.FromString(raw)
                for raw in answer.file_descriptor_response.file_descriptor_proto
            ]
            assert any(f"{file.package}.{service.name}" == name for file in files for service in file.service)


def test_the_generated_reflection_stub_is_the_old_version():
    """The day the package ships v1 itself, libs/rpc/reflection.py can go."""
    assert reflection_pb2.DESCRIPTOR.package == "grpc.reflection.v1alpha"
    assert not hasattr(reflection_pb2_grpc, "v1")


async def test_channelz_is_on_the_admin_port_alone(hops: Hops):
    """OPS-4: channelz, with health and reflection, answers on the admin address and nowhere else."""
    admin = parse("127.0.0.1:0")
    hop = await hops.open(admin=admin)
    request = channelz_pb2.GetServersRequest()
    assert hop.server.bound_admin is not None
    async with open_channel(hop.server.bound_admin) as channel:
        assert len((await channelz_pb2_grpc.ChannelzStub(channel).GetServers(request)).server) >= 2
        assert (await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())).status == SERVING
    async with open_channel(hop.address) as channel:
        with pytest.raises(aio.AioRpcError) as failed:
            await channelz_pb2_grpc.ChannelzStub(channel).GetServers(request)
        assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_socket_file_is_private_and_replaces_a_dead_one(hops: Hops):
    """OPS-2: after a crash the same path can be served again; other users of the machine cannot knock."""
    hop = await hops.open()
    if hop.address.target.startswith("unix:"):
        path = hop.address.target.removeprefix("unix:")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with pytest.raises(OSError, match="cannot listen on"):
        await RpcServer([parse(f"unix:{'x' * 200}/s.sock")]).start()
