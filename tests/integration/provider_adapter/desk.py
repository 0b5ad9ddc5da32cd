"""The provider adapter as its peers see it, for servers that do exactly what a test says, and what those may answer."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.host.world import real_world
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from pointsman.provider_adapter.v1 import provider_pb2
from pointsman.provider_adapter.v1 import provider_service_pb2 as pb
from pointsman.provider_adapter.v1.provider_service_pb2_grpc import ProviderServiceStub
from services.provider_adapter.compose import build
from services.provider_adapter.settings import Settings
from tests.integration.provider_adapter.raw_server import RawServer

EXCHANGES = Path(__file__).parents[2] / "cases" / "exchanges"
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC"
MESSAGES = [{"role": "user", "content": "a secret about Otto Quill"}]
COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-4o-mini-2024-07-18",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
}


class Desk:
    """The provider adapter as its peers see it."""

    def __init__(self, stub: Any) -> None:
        self.stub = stub

    async def invoke(self, server: RawServer, kind: str = "chat", *, adapter: str = "openai", **given: Any) -> Any:
        """One call."""
        request = pb.InvokeRequest(channel=channel(server, adapter), call=call(kind, **given))
        async with faults_from_rpc():
            return await self.stub.Invoke(request, timeout=20)

    async def refusal(self, server: RawServer, kind: str = "chat", **given: Any) -> Fault:
        """The fault in which a call ends."""
        with pytest.raises(Fault) as caught:
            await self.invoke(server, kind, **given)
        return caught.value

    async def stream(self, server: RawServer, *, adapter: str = "openai", **given: Any) -> tuple[list[Any], Any]:
        """The chunks of one streamed call, and its report or the fault in which it ended."""
        request = pb.InvokeStreamRequest(channel=channel(server, adapter), call=call("chat", **given))
        chunks: list[Any] = []
        try:
            async with faults_from_rpc():
                async for piece in self.stub.InvokeStream(request, timeout=20):
                    if piece.WhichOneof("piece") == "report":
                        return chunks, piece.report
                    chunks.append(json.loads(piece.chunk))
        except Fault as fault:
            return chunks, fault
        raise AssertionError("the stream ended without a word")


def channel(server: RawServer, adapter: str) -> provider_pb2.ChannelEndpoint:
    """The way to a raw server."""
    return provider_pb2.ChannelEndpoint(
        channel_id="c-main", adapter=adapter, base_url=f"{server.url}/v1", secret_ref="env:KEY"
    )


def call(
    kind: str, first_s: float = 0, inter_s: float = 0, model: str = "gpt-4o-mini", **given: Any
) -> provider_pb2.SynchronousCall:
    """A call; a chat with one message unless told otherwise."""
    if kind == "chat":
        given.setdefault("messages", MESSAGES)
    made = provider_pb2.SynchronousCall(
        attempt_id="attempt-1",
        client_token="token-1",
        kind=kind,
        upstream_model=model,
        input=json.dumps(given).encode(),
    )
    for name, seconds in (("first_token_timeout", first_s), ("inter_token_timeout", inter_s)):
        if seconds:
            getattr(made, name).FromMilliseconds(int(seconds * 1000))
    return made


@asynccontextmanager
async def opened_desk(blobs: Path) -> AsyncIterator[Desk]:
    """The service over loopback."""
    registry = LoopbackRegistry()
    async with Channels(registry=registry, caller="routing") as channels:
        settings = Settings(str(blobs), environment={"KEY": "sk-hush-hush-hush"})
        context = build(settings, channels, real_world())
        server = RpcServer(registry=registry)
        for _, add in context.registrations:
            server.add(add)
        await context.start()
        await server.start()
        try:
            yield Desk(ProviderServiceStub(channels.to("provider_adapter")))
        finally:
            await server.close()
            await context.stop()


def event(document: Any) -> bytes:
    """One server-sent event."""
    return b"data: " + (document if isinstance(document, bytes) else json.dumps(document).encode()) + b"\n\n"


def said(text: str, reason: str | None = None) -> bytes:
    """A chunk that says something."""
    delta = {"content": text} if text else {}
    return event({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


ROLE = event({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
USAGE = event({"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
DONE = event(b"[DONE]")
SSE = "Content-Type: text/event-stream"
JSON = "Content-Type: application/json"
