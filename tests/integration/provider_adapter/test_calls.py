"""Synchronous calls and streams through the real service, against servers that do exactly what a test says."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
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
from services.provider_adapter.adapters.registry import ADAPTERS
from services.provider_adapter.compose import build
from services.provider_adapter.settings import Settings
from tests.integration.provider_adapter.raw_server import Act, RawServer, answers, drops, resets, streams

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


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """The service over loopback."""
    registry = LoopbackRegistry()
    async with Channels(registry=registry, caller="routing") as channels:
        settings = Settings(str(tmp_path / "blobs"), environment={"KEY": "sk-hush-hush-hush"})
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


async def test_a_completion(desk) -> None:
    """SYN-1 SYN-11: the answer passes through as it came; usage, reason and the provider's id are reported."""
    body = json.dumps(COMPLETION).encode()
    async with RawServer([answers("200 OK", body, JSON, "x-request-id: req-7")]) as server:
        answer = await desk.invoke(server, temperature=0.2, stream=True)
        sent = json.loads(server.bodies[0])
        head = server.requests[0].lower()
    assert answer.output == body
    assert (answer.report.usage.input_tokens, answer.report.usage.output_tokens) == (9, 2)
    assert not answer.report.usage.HasField("cached_input_tokens")
    assert (answer.report.finish_reason, answer.report.provider_request_id) == ("stop", "req-7")
    assert answer.report.time_to_first_token.nanos > 0
    assert sent == {"messages": MESSAGES, "temperature": 0.2, "model": "gpt-4o-mini"}
    assert head.startswith("post /v1/chat/completions ")
    assert "authorization: bearer sk-hush-hush-hush" in head


async def test_calls_share_a_connection(desk) -> None:
    """PRF-1: chat calls ride kept-alive connections, streamed ones too once their last event was read."""
    done = streams(ROLE, said("Hi"), said("", "stop"), DONE)
    async with RawServer([answers("200 OK", json.dumps(COMPLETION).encode(), JSON), done]) as server:
        await desk.invoke(server)
        await desk.stream(server)
        await desk.stream(server)
        assert (len(server.requests), server.connections) == (3, 1)


async def test_a_stream(desk) -> None:
    """SYN-8: chunks as they come, from the first that says something on, and at the end the report with the usage."""
    async with RawServer([streams(ROLE, said("Hel"), said("lo."), said("", "stop"), USAGE, DONE)]) as server:
        chunks, report = await desk.stream(server)
        sent = json.loads(server.bodies[0])
    assert [chunk["choices"][0]["delta"].get("content") for chunk in chunks] == ["", "Hel", "lo.", None]
    assert (report.usage.output_tokens, report.finish_reason) == (2, "stop")
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})


@pytest.mark.parametrize("end", [drops, resets])
async def test_a_call_whose_connection_drops_is_one_request(desk, end) -> None:
    """SYN-1 ERR-1a: nothing is re-sent behind our back, streamed or not, and the fault says that nobody knows."""
    async with RawServer([end]) as server:
        fault = await desk.refusal(server)
        assert (fault.code, fault.category, len(server.requests)) == ("submission_unknown", "unknown", 1)
        chunks, fault = await desk.stream(server)
        assert (chunks, fault.code, len(server.requests)) == ([], "submission_unknown", 2)


INPUTS: dict[str, dict[str, Any]] = {
    "chat": {"messages": MESSAGES},
    "embedding": {"input": ["a storm"]},
    "ocr": {"image": {"base64": DOT, "media_type": "image/png"}},
    "image": {"prompt": "a storm"},
    "speech": {"text": "Good evening."},
}
CALLS = [(name, kind) for name, each in ADAPTERS.items() for kind in each.manifest.synchronous_kinds]
STREAMS = [name for name, each in ADAPTERS.items() if each.manifest.streamed_kinds]
CUT = answers("200 OK", b'{"cut', JSON, length=900)


@pytest.mark.parametrize("end", [drops, resets, CUT], ids=["drop", "reset", "cut"])
@pytest.mark.parametrize(("name", "kind"), CALLS)
async def test_a_call_that_was_read_is_not_sent_again(desk, name: str, kind: str, end: Act) -> None:
    """SYN-1 ERR-1a: for every dialect and kind exactly one request with its body on the wire; nobody knows its fate."""
    async with RawServer([end]) as server:
        fault = await desk.refusal(server, kind, adapter=name, **INPUTS[kind])
        assert (fault.code, fault.scope, fault.retryable) == ("submission_unknown", "attempt", False)
        assert len(server.requests) == 1
        assert server.bodies[0]


@pytest.mark.parametrize("end", [drops, resets, streams(broken=True)], ids=["drop", "reset", "cut"])
@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_that_was_read_is_not_sent_again(desk, name: str, end: Act) -> None:
    """SYN-8 ERR-1a: the same of every dialect that streams."""
    async with RawServer([end]) as server:
        chunks, fault = await desk.stream(server, adapter=name)
        assert (chunks, fault.code, fault.retryable) == ([], "submission_unknown", False)
        assert len(server.requests) == 1


PNG = base64.b64decode(DOT)
PICTURES = {
    "data": [
        {"b64_json": base64.b64encode(PNG).decode(), "revised_prompt": "one blue petal"},
        {"b64_json": base64.b64encode(PNG + b"2").decode()},
    ],
    "size": "1024x1024",
    "usage": {"input_tokens": 9, "output_tokens": 200, "input_tokens_details": {"image_tokens": 4, "text_tokens": 5}},
}


@pytest.mark.parametrize("name", ["openai", "azure-openai", "ark"])
async def test_pictures(desk, name: str) -> None:
    """SYN-1: pictures are stored and counted; each call rides a connection of its own, so that none dies unseen."""
    picture = answers("200 OK", json.dumps(PICTURES).encode(), JSON, "x-request-id: req-8", "apim-request-id: req-8")
    async with RawServer([picture]) as server:
        answer = await desk.invoke(server, "image", adapter=name, prompt="a petal", n=2)
        await desk.invoke(server, "image", adapter=name, prompt="a petal", n=2)
        assert (len(server.requests), server.connections) == (2, 2)
    assert [item.media_type for item in answer.artifacts] == ["image/png", "image/png"]
    told = [{"artifact": item.sha256, "media_type": "image/png"} for item in answer.artifacts]
    if name != "ark":
        told[0]["revised_prompt"] = "one blue petal"
    assert json.loads(answer.output)["data"] == told
    assert (answer.report.usage.images, answer.report.usage.output_tokens) == (2, 200)
    if name != "ark":
        assert (answer.report.usage.input_image_tokens, answer.report.provider_request_id) == (4, "req-8")


async def test_speech(desk) -> None:
    """SYN-1: sound is stored, and paid for by its characters."""
    async with RawServer([answers("200 OK", b"ID3" + b"s" * 80, "Content-Type: audio/mpeg")]) as server:
        answer = await desk.invoke(server, "speech", text="Good evening.", voice="nova")
    [artifact] = answer.artifacts
    assert (artifact.media_type, artifact.size_bytes) == ("audio/mpeg", 83)
    assert answer.report.usage.characters == 13


async def test_a_page_of_our_own_is_read(desk) -> None:
    """SYN-11: a picture that is an artifact travels to the reading server as its bytes."""
    seen = {"text": "Exit", "blocks": [{"text": "Exit", "box": [1, 2, 3, 4], "confidence": 0.9, "kind": "line"}]}
    acts = [
        answers("200 OK", json.dumps({"data": [{"b64_json": base64.b64encode(PNG).decode()}]}).encode(), JSON),
        answers("200 OK", json.dumps(seen | {"pages": 1}).encode(), JSON),
    ]
    async with RawServer(acts) as server:
        [artifact] = (await desk.invoke(server, "image", prompt="a sign")).artifacts
        answer = await desk.invoke(server, "ocr", adapter="local-ocr", image={"artifact": artifact.sha256})
        sent = json.loads(server.bodies[1])
    assert sent["image"] == {"base64": base64.b64encode(PNG).decode(), "media_type": "image/png"}
    assert json.loads(answer.output)["blocks"] == seen["blocks"]
    assert answer.report.usage.pages == 1


@pytest.mark.parametrize("name", STREAMS)
async def test_every_dialect_streams_its_own_last_event(desk, name: str) -> None:
    """SYN-8: what a dialect has on record as a stream comes over a socket in single bytes as it does at once."""
    record = json.loads((EXCHANGES / name / "stream_words.json").read_text())
    body = b"".join(each.encode() if isinstance(each, str) else sse(each) for each in record["response"]["events"])
    async with RawServer([streams(*(body[index : index + 1] for index in range(len(body))))]) as server:
        chunks, report = await desk.stream(server, adapter=name, messages=record["job"]["input"]["messages"])
    assert [chunk["choices"] for chunk in chunks] == [chunk["choices"] for chunk in record["outcome"]["chunks"]]
    assert report.usage.output_tokens == record["outcome"]["report"]["usage"]["output_tokens"]


def sse(given: Any) -> bytes:
    """An event on record: `[name, data]` or data."""
    name, data = given if isinstance(given, list) else ("", given)
    return (f"event: {name}\n" if name else "").encode() + event(data)


async def test_a_stream_that_is_cut_has_not_ended(desk) -> None:
    """SYN-8: without the provider's last event it is no success: before the first token nobody knows, after it the
    stream was interrupted; what came before is given."""
    whole = [ROLE, said("Hel"), said("lo.")]
    async with RawServer([streams(*whole), streams(ROLE), streams(*whole, broken=True)]) as server:
        chunks, fault = await desk.stream(server)
        assert (len(chunks), fault.code, fault.category) == (3, "stream_interrupted", "unknown")
        assert fault.metadata["evidence"] == "the stream ended before its last event"
        chunks, fault = await desk.stream(server)
        assert (chunks, fault.code) == ([], "submission_unknown")
        chunks, fault = await desk.stream(server)
        assert (len(chunks), fault.code) == (3, "stream_interrupted")
        assert len(server.requests) == 3


async def test_an_error_in_a_stream(desk) -> None:
    """SYN-8 ERR-1: what the provider says of itself stands, before the first token and after it; after it with the word
    that it may have been charged."""
    error = event({"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}})
    async with RawServer([streams(ROLE, error), streams(ROLE, said("Hel"), error, said("lost"))]) as server:
        chunks, fault = await desk.stream(server)
        assert (chunks, fault.code, fault.retryable) == ([], "rate_limited", True)
        chunks, fault = await desk.stream(server)
        assert (len(chunks), fault.code, fault.metadata["possibly_charged"]) == (2, "rate_limited", "true")


async def test_a_refusal_in_a_stream(desk) -> None:
    """SYN-2 SYN-8: a filter that leaves no word is a refusal of the content; after some words it is how they end."""
    async with RawServer(
        [
            streams(ROLE, said("", "content_filter"), DONE),
            streams(ROLE, said("Once"), said("", "content_filter"), DONE),
        ]
    ) as server:
        chunks, fault = await desk.stream(server)
        assert (chunks, fault.code) == ([], "content_rejected")
        chunks, report = await desk.stream(server)
        assert (len(chunks), report.finish_reason) == (3, "content_filter")


async def test_the_watchdogs(desk) -> None:
    """SYN-8: no first token in time, and silence between two; events that say nothing are no tokens."""
    async with RawServer([]) as server:
        server.acts += [server.silent, streams(ROLE, then=server.silent), streams(said("Hel"), then=server.silent)]
        server.acts.append(server.silent)
        chunks, fault = await desk.stream(server, first_s=0.2, inter_s=5)
        assert (chunks, fault.code, fault.metadata["evidence"]) == ([], "submission_unknown", "transport read_timeout")
        chunks, fault = await desk.stream(server, first_s=0.2, inter_s=5)
        assert (chunks, fault.code) == ([], "submission_unknown")
        chunks, fault = await desk.stream(server, first_s=5, inter_s=0.2)
        assert (len(chunks), fault.code) == (1, "stream_interrupted")
        fault = await desk.refusal(server, first_s=0.2)
        assert (fault.code, len(server.requests)) == ("submission_unknown", 4)


async def test_who_leaves_ends_the_providers_stream(desk) -> None:
    """SYN-8: a caller that stops reading closes the connection to the provider."""
    async with RawServer([]) as server:
        server.acts.append(streams(said("Hel"), then=server.hung_up))
        request = pb.InvokeStreamRequest(channel=channel(server, "openai"), call=call("chat"))
        pieces = desk.stub.InvokeStream(request, timeout=20)
        async for _ in pieces:
            break
        pieces.cancel()
        await asyncio.wait_for(server.left.wait(), 10)
        assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["chat", "image"])
async def test_who_leaves_ends_the_call(desk, kind: str) -> None:
    """SYN-8: a caller that gives up closes the connection to the provider, pooled or not; it is not sent again."""
    async with RawServer([]) as server:
        server.acts.append(server.hung_up)
        request = pb.InvokeRequest(channel=channel(server, "openai"), call=call(kind, **INPUTS[kind]))
        asked = desk.stub.Invoke(request, timeout=20)
        waiting = asyncio.ensure_future(asked.code())
        await asyncio.wait_for(server.heard.wait(), 10)
        asked.cancel()
        await asyncio.wait_for(server.left.wait(), 10)
        assert await waiting is grpc.StatusCode.CANCELLED
        assert len(server.requests) == 1


async def test_an_answer_that_is_no_stream(desk) -> None:
    """SYN-8: a server that does not stream is not asked again: all of its answer is one chunk; a refusal is read."""
    refusal = {"error": {"message": "Incorrect API key provided: sk-hush-hush-hush", "code": "invalid_api_key"}}
    acts = [
        answers("200 OK", json.dumps(COMPLETION).encode(), JSON),
        answers("401 Unauthorized", json.dumps(refusal).encode(), "Content-Type: text/plain"),
    ]
    async with RawServer(acts) as server:
        chunks, report = await desk.stream(server)
        assert [chunk["choices"][0]["delta"]["content"] for chunk in chunks] == ["Hello."]
        assert (report.usage.input_tokens, report.finish_reason) == (9, "stop")
        _, fault = await desk.stream(server)
        assert (fault.code, fault.scope) == ("key_invalid", "channel")
        assert "hush" not in fault.provider_message


async def test_what_a_call_said_stays_private(desk) -> None:
    """ERR-4: neither the key nor the conversation comes back in a fault, in a stream or before it."""
    error = {"error": {"message": f"flagged: {MESSAGES[0]['content']} by sk-hush-hush-hush", "code": "server_error"}}
    acts = [streams(said("Hel"), event(error)), answers("500 Oops", json.dumps(error).encode(), JSON)]
    async with RawServer(acts) as server:
        _, interrupted = await desk.stream(server)
        failed = await desk.refusal(server)
    for fault in (interrupted, failed):
        assert "flagged" in fault.provider_message
        assert "Otto" not in str(fault.to_json())
        assert "hush" not in str(fault.to_json())


@pytest.mark.parametrize(
    ("given", "pointer"), [({"messages": []}, "/input/messages"), ({"kind": "embedding"}, "/input/input")]
)
async def test_an_input_that_no_server_takes(desk, given, pointer) -> None:
    """SYN-2 ERR-2: it is named and nothing is sent."""
    async with RawServer([drops]) as server:
        fault = await desk.refusal(server, **given)
        assert (fault.code, fault.errors[0].pointer, server.requests) == ("validation_failed", pointer, [])


async def test_a_kind_that_is_no_call(desk) -> None:
    """CAT-6: an asynchronous kind, or one that the adapter does not stream, is a broken configuration."""
    async with RawServer([drops]) as server:
        assert (await desk.refusal(server, "video", adapter="ark")).code == "source_not_configured"
        _, fault = await desk.stream(server, adapter="ark")
        assert (fault.code, server.requests) == ("source_not_configured", [])
