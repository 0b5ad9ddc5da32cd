"""Synchronous calls through the real service, against servers that do exactly what a test says."""

import asyncio
import base64
import json
from typing import Any

import grpc
import pytest

from pointsman.provider_adapter.v1 import provider_service_pb2 as pb
from services.provider_adapter.adapters.registry import ADAPTERS
from tests.integration.provider_adapter.desk import (
    COMPLETION,
    DONE,
    DOT,
    JSON,
    MESSAGES,
    ROLE,
    call,
    channel,
    event,
    said,
)
from tests.integration.provider_adapter.raw_server import Act, RawServer, answers, drops, resets, streams

INPUTS: dict[str, dict[str, Any]] = {
    "chat": {"messages": MESSAGES},
    "embedding": {"input": ["a storm"]},
    "ocr": {"image": {"base64": DOT, "media_type": "image/png"}},
    "image": {"prompt": "a storm"},
    "speech": {"text": "Good evening."},
}
CALLS = [(name, kind) for name, each in ADAPTERS.items() for kind in each.manifest.synchronous_kinds]
CUT = answers("200 OK", b'{"cut', JSON, length=900)

PNG = base64.b64decode(DOT)
PICTURES = {
    "data": [
        {"b64_json": base64.b64encode(PNG).decode(), "revised_prompt": "one blue petal"},
        {"b64_json": base64.b64encode(PNG + b"2").decode()},
    ],
    "size": "1024x1024",
    "usage": {"input_tokens": 9, "output_tokens": 200, "input_tokens_details": {"image_tokens": 4, "text_tokens": 5}},
}


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


@pytest.mark.parametrize("end", [drops, resets])
async def test_a_call_whose_connection_drops_is_one_request(desk, end) -> None:
    """SYN-1 ERR-1a: nothing is re-sent behind our back, streamed or not, and the fault says that nobody knows."""
    async with RawServer([end]) as server:
        fault = await desk.refusal(server)
        assert (fault.code, fault.category, len(server.requests)) == ("submission_unknown", "unknown", 1)
        chunks, fault = await desk.stream(server)
        assert (chunks, fault.code, len(server.requests)) == ([], "submission_unknown", 2)


@pytest.mark.parametrize("end", [drops, resets, CUT], ids=["drop", "reset", "cut"])
@pytest.mark.parametrize(("name", "kind"), CALLS)
async def test_a_call_that_was_read_is_not_sent_again(desk, name: str, kind: str, end: Act) -> None:
    """SYN-1 ERR-1a: for every dialect and kind exactly one request with its body on the wire; nobody knows its fate."""
    async with RawServer([end]) as server:
        fault = await desk.refusal(server, kind, adapter=name, **INPUTS[kind])
        assert (fault.code, fault.scope, fault.retryable) == ("submission_unknown", "attempt", False)
        assert len(server.requests) == 1
        assert server.bodies[0]


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
