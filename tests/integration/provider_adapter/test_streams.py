"""Streamed calls through the real service, against servers that do exactly what a test says."""

import asyncio
import json
from typing import Any

import pytest

from pointsman.provider_adapter.v1 import provider_service_pb2 as pb
from services.provider_adapter.adapters.registry import ADAPTERS
from tests.integration.provider_adapter.desk import (
    COMPLETION,
    DONE,
    EXCHANGES,
    JSON,
    ROLE,
    USAGE,
    call,
    channel,
    event,
    said,
)
from tests.integration.provider_adapter.raw_server import Act, RawServer, answers, drops, resets, streams

STREAMS = [name for name, each in ADAPTERS.items() if each.manifest.streamed_kinds]


async def test_a_stream(desk) -> None:
    """SYN-8: chunks as they come, from the first that says something on, and at the end the report with the usage."""
    async with RawServer([streams(ROLE, said("Hel"), said("lo."), said("", "stop"), USAGE, DONE)]) as server:
        chunks, report = await desk.stream(server)
        sent = json.loads(server.bodies[0])
    assert [chunk["choices"][0]["delta"].get("content") for chunk in chunks] == ["", "Hel", "lo.", None]
    assert (report.usage.output_tokens, report.finish_reason) == (2, "stop")
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})


async def test_what_is_there_at_once_comes_at_once(desk) -> None:
    """SYN-8: whoever permits it is given in one message what came together, in its order."""
    async with RawServer([streams(ROLE + said("Hel") + said("lo.") + said("", "stop") + USAGE + DONE)]) as server:
        asked = pb.InvokeStreamRequest(channel=channel(server, "openai"), call=call("chat"), together=True)
        messages = [message async for message in desk.stub.InvokeStream(asked, timeout=20)]
    assert [message.WhichOneof("piece") for message in messages] == [None, "report"]
    deltas = [json.loads(chunk)["choices"][0]["delta"] for chunk in messages[0].chunks]
    assert [delta.get("content") for delta in deltas] == ["", "Hel", "lo.", None]


@pytest.mark.parametrize("end", [drops, resets, streams(broken=True)], ids=["drop", "reset", "cut"])
@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_that_was_read_is_not_sent_again(desk, name: str, end: Act) -> None:
    """SYN-8 ERR-1a: the same of every dialect that streams."""
    async with RawServer([end]) as server:
        chunks, fault = await desk.stream(server, adapter=name)
        assert (chunks, fault.code, fault.retryable) == ([], "submission_unknown", False)
        assert len(server.requests) == 1


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
