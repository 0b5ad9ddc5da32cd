"""The official OpenAI client against the edge on a real port; only its address and its key are ours (OAI-1)."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

from libs.faults.fault import Fault, FieldError
from pointsman.common.v1 import artifact_pb2
from tests.contract.edge.fake_calls import piece
from tests.contract.edge.house import EdgeHouse, edge_house

MESSAGES: Any = [{"role": "user", "content": "Hello"}]


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[EdgeHouse]:
    """The edge with its port open."""
    async with edge_house(tmp_path) as house:
        await house.context.start()
        yield house


@pytest.fixture
async def client(edge: EdgeHouse) -> AsyncIterator[AsyncOpenAI]:
    """The client with a key that may call."""
    _, key = await edge.key("studio", "invoke")
    async with AsyncOpenAI(base_url=f"{edge.context.url}/v1", api_key=key, max_retries=0) as made:
        yield made


async def collect(chunks: AsyncIterator[Any], seen: list[Any]) -> None:
    """Add the text of each chunk to `seen`, until the stream ends or raises."""
    async for chunk in chunks:
        seen.append(chunk.choices[0].delta.content)


async def test_a_chat(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """OAI-1: a completion, its usage with details, and the id of the call in its headers."""
    raw = await client.chat.completions.with_raw_response.create(
        model="chat-small", messages=MESSAGES, temperature=0.2, user="u1", metadata={"act": "1"}
    )
    found = raw.parse()
    assert (found.object, found.model) == ("chat.completion", "chat-small")
    assert found.choices[0].message.content == "Good day."
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens, found.usage.total_tokens) == (9, 3, 12)
    assert found.usage.prompt_tokens_details is not None
    assert found.usage.completion_tokens_details is not None
    assert found.usage.prompt_tokens_details.cached_tokens == 4
    assert found.usage.completion_tokens_details.reasoning_tokens == 1
    (asked,) = edge.routing.asked
    assert json.loads(asked.input) == {
        "messages": MESSAGES, "temperature": 0.2, "user": "u1", "metadata": {"act": "1"},
    }  # fmt: skip
    assert raw.headers["pointsman-call"] == asked.call_id == found.id.removeprefix("chatcmpl-")
    assert raw.headers["pointsman-supply"] == "ark-main/chat"
    assert raw.headers["x-request-id"]


async def test_our_options_through_the_client(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """SYN-11: extra_body and extra_headers carry our own options."""
    await client.chat.completions.create(
        model="chat-small",
        messages=MESSAGES,
        extra_body={"options": {"timeout_s": 9, "cache": False}},
        extra_headers={"Pointsman-Session": "s1"},
    )
    options = edge.routing.asked[0].options
    assert (options.timeout.ToMilliseconds(), options.skip_cache, options.session_id) == (9000, True, "s1")


async def test_a_stream(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """OAI-1: chunks as they come, one id and model throughout; no figures unless they were asked for."""
    edge.routing.pieces.append(piece("", usage={"prompt_tokens": 1}, choices=[]))
    stream = await client.chat.completions.create(model="chat-small", messages=MESSAGES, stream=True)
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Good day."
    (asked,) = edge.routing.asked
    assert {chunk.id for chunk in chunks} == {f"chatcmpl-{asked.call_id}"}
    assert {(chunk.object, chunk.model) for chunk in chunks} == {("chat.completion.chunk", "chat-small")}
    assert [chunk.usage for chunk in chunks] == [None, None]
    assert json.loads(asked.input) == {"messages": MESSAGES}


async def test_pieces_that_come_at_once_are_events_all_the_same(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """OAI-1: what routing gives in one message is told as one event each, in its order."""
    edge.routing.at_once = True
    stream = await client.chat.completions.create(model="chat-small", messages=MESSAGES, stream=True)
    assert [chunk.choices[0].delta.content async for chunk in stream] == ["Good", " day."]


@pytest.mark.parametrize("told", [True, False])
async def test_a_stream_with_usage(edge: EdgeHouse, client: AsyncOpenAI, told: bool) -> None:
    """OAI-1: with include_usage the last chunk has the figures, the provider's or, where it told none, ours."""
    if told:
        usage = {"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10}
        edge.routing.pieces[1] = piece(" day.", usage=usage)
    stream = await client.chat.completions.create(
        model="chat-small", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert [len(chunk.choices) for chunk in chunks] == [1, 1, 0]
    last = chunks[-1].usage
    assert last is not None
    assert (last.prompt_tokens, last.total_tokens) == ((8, 10) if told else (9, 12))
    assert [chunk.usage for chunk in chunks[:-1]] == [None, None]


async def test_a_stream_arrives_while_it_is_made(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """SYN-8: a chunk is with the client before the next one exists."""
    edge.routing.gate.clear()
    stream = await client.chat.completions.create(model="chat-small", messages=MESSAGES, stream=True)
    chunks = aiter(stream)
    async with asyncio.timeout(10):
        assert (await anext(chunks)).choices[0].delta.content == "Good"
        edge.routing.gate.set()
        assert (await anext(chunks)).choices[0].delta.content == " day."


async def test_a_stream_that_breaks(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """SYN-8: after the first token a fault is an honest event of the stream, and the client raises it."""
    edge.routing.cut = Fault.of("stream_interrupted", "the stream broke off after 2 pieces")
    stream = await client.chat.completions.create(model="chat-small", messages=MESSAGES, stream=True)
    seen: list[Any] = []
    with pytest.raises(openai.APIError) as caught:
        await collect(aiter(stream), seen)
    assert seen == ["Good", " day."]
    assert (caught.value.code, caught.value.message) == ("stream_interrupted", "the stream broke off after 2 pieces")
    url, headers = f"{edge.context.url}/v1/chat/completions", {"authorization": f"Bearer {client.api_key}"}
    body = {"model": "chat-small", "messages": MESSAGES, "stream": True}
    async with httpx2.AsyncClient() as plain:
        text = (await plain.post(url, json=body, headers=headers)).text
        edge.routing.cut = None
        whole = (await plain.post(url, json=body, headers=headers)).text
    assert whole.endswith("\n\n: pointsman-supply: ark-main/chat, pointsman-cost: 0.0012 USD\n\ndata: [DONE]\n\n")
    assert "[DONE]" not in text
    problem = json.loads(text.strip().rpartition("data: ")[2])
    assert (problem["code"], problem["status"], problem["retryable"]) == ("stream_interrupted", 502, False)


async def test_a_stream_that_never_begins(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """SYN-8: before the first token a fault has its status, as if nothing had been streamed."""
    edge.routing.fault = Fault.of("quota_full", "2 supplies are full", retry_after_ms=3000)
    with pytest.raises(openai.RateLimitError) as caught:
        await client.chat.completions.create(model="chat-small", messages=MESSAGES, stream=True)
    assert caught.value.response.headers["retry-after"] == "3"


async def test_a_stream_ends_with_its_key(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """AUTH-1: a key that is revoked while its stream goes on ends it, within the time that revocations take."""
    edge.routing.gate.clear()
    stream = await client.chat.completions.create(model="chat-small", messages=MESSAGES, stream=True)
    chunks = aiter(stream)
    assert (await anext(chunks)).choices
    async with edge.admin as admin:
        key_id = client.api_key.split("_")[1]
        assert (await admin.delete(f"/v1/operator/keys/{key_id}")).status_code == 204
    edge.clock.advance(3)
    edge.routing.gate.set()
    with pytest.raises(openai.APIError) as caught:
        await collect(chunks, [])
    assert caught.value.code == "unauthenticated"


async def test_a_stream_that_outlives_its_server(tmp_path: Path) -> None:
    """SYN-8, OPS-4: when the server stops before a stream has ended, its last event says so; upstream is given
    up."""
    async with edge_house(tmp_path, drain_s=1.0) as edge:
        await edge.context.start()
        _, key = await edge.key("studio", "invoke")
        async with AsyncOpenAI(base_url=f"{edge.context.url}/v1", api_key=key, max_retries=0) as client:
            edge.routing.gate.clear()
            stream = await client.chat.completions.create(model="chat-small", messages=MESSAGES, stream=True)
            chunks = aiter(stream)
            assert (await anext(chunks)).choices
            stopping = asyncio.create_task(edge.context.stop())
            with pytest.raises(openai.APIError) as caught:
                await collect(chunks, [])
            await stopping
    assert caught.value.code == "stream_interrupted"
    assert edge.routing.given_up == [edge.routing.asked[0].call_id]


async def test_a_client_that_goes_away(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """SYN-8: closing the connection cancels routing's stream."""
    edge.routing.gate.clear()
    stream = await client.chat.completions.create(model="chat-small", messages=MESSAGES, stream=True)
    assert (await anext(aiter(stream))).choices
    await stream.close()
    async with asyncio.timeout(10):
        await edge.routing.gate.wait()
    assert edge.routing.given_up == [edge.routing.asked[0].call_id]


async def test_embeddings(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """OAI-1: the client asks for base64 by itself and gets numbers; asked for floats, it gets the same."""
    for form in (openai.omit, "float"):
        found = await client.embeddings.create(model="vectors", input=["a", "b"], encoding_format=form)  # type: ignore[arg-type]  # either
        assert [item.embedding for item in found.data] == [[0.5, -0.25], [1.0, 0.0]]
        assert [item.index for item in found.data] == [0, 1]
        assert (found.model, found.usage.prompt_tokens, found.usage.total_tokens) == ("vectors", 9, 9)
    assert {asked.kind for asked in edge.routing.asked} == {"embedding"}
    assert json.loads(edge.routing.asked[0].input) == {"input": ["a", "b"]}


async def test_images(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """OAI-1: pictures as an address that the same key reads, or as their bytes."""
    blob = await edge.blobs.put(b"a picture", "image/png")
    edge.routing.artifacts = [artifact_pb2.Artifact(sha256=blob.sha256, media_type="image/png", size_bytes=9)]
    found = await client.images.generate(model="keyframe", prompt="a lake", size="1024x1024", n=1)
    (picture,) = found.data or ()
    assert picture.url == f"{edge.context.url}/v1/artifacts/{blob.sha256}"
    assert picture.revised_prompt == "a calm lake"
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {client.api_key}"}) as plain:
        assert (await plain.get(picture.url)).content == b"a picture"
    found = await client.images.generate(model="keyframe", prompt="a lake", response_format="b64_json")
    (picture,) = found.data or ()
    assert base64.b64decode(picture.b64_json or "") == b"a picture"
    assert picture.url is None
    sent = json.loads(edge.routing.asked[0].input)
    assert sent == {"prompt": "a lake", "size": "1024x1024", "n": 1}


async def test_speech(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """OAI-1: speech comes as its bytes in the type that was made."""
    blob = await edge.blobs.put(b"RIFF", "audio/wav")
    edge.routing.artifacts = [artifact_pb2.Artifact(sha256=blob.sha256, media_type="audio/wav", size_bytes=4)]
    found = await client.audio.speech.create(model="narrator", voice="alloy", input="Hello")
    assert (found.content, found.response.headers["content-type"]) == (b"RIFF", "audio/wav")


async def test_models(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """OAI-2: the client lists what its key may use, not what needs a Run; the fields beyond OpenAI's are there too."""
    edge.catalog.kinds = {"chat-small": "chat"}
    edge.catalog.models["studio"] = ["chat-small", "clip"]
    (model,) = (await client.models.list()).data
    assert (model.id, model.object, model.owned_by) == ("chat-small", "model", "pointsman")
    more = model.model_extra or {}
    assert {"kind", "profile", "limits", "price_range", "degradations"} <= more.keys()
    assert (await client.models.retrieve("chat-small")).id == "chat-small"
    for hidden in ("clip", "none"):
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve(hidden)


RAISED = [
    (Fault.of("validation_failed", "bad", errors=(FieldError("/input/messages/0", "must be a message"),)),
     openai.UnprocessableEntityError, 422),
    (Fault.of("content_rejected"), openai.UnprocessableEntityError, 422),
    (Fault.of("model_not_published"), openai.NotFoundError, 404),
    (Fault.of("forbidden"), openai.PermissionDeniedError, 403),
    (Fault.of("malformed_request"), openai.BadRequestError, 400),
    (Fault.of("quota_full", retry_after_ms=2000), openai.RateLimitError, 429),
    (Fault.of("capacity_exhausted"), openai.RateLimitError, 429),
    (Fault.of("quota_exceeded"), openai.RateLimitError, 429),
    (Fault.of("retry_exhausted"), openai.InternalServerError, 502),
    (Fault.of("circuit_open_all"), openai.InternalServerError, 503),
    (Fault.of("governance_backend_down"), openai.InternalServerError, 503),
    (Fault.of("deadline_exceeded"), openai.InternalServerError, 504),
]  # fmt: skip


@pytest.mark.parametrize("fault, kind, status", RAISED, ids=[fault.code for fault, _, _ in RAISED])
async def test_its_exceptions(
    edge: EdgeHouse, client: AsyncOpenAI, fault: Fault, kind: type[openai.APIStatusError], status: int
) -> None:
    """OAI-1: each fault raises the client's right class, in OpenAI's envelope and as a problem at once."""
    edge.routing.fault = fault
    with pytest.raises(openai.APIStatusError) as caught:
        await client.chat.completions.create(model="chat-small", messages=MESSAGES)
    error = caught.value
    assert (type(error), error.status_code, error.code) == (kind, status, fault.code)
    told = error.response.json()
    assert (told["code"], told["status"], told["request_id"]) == (fault.code, status, error.request_id)
    assert told["error"]["message"] == told["detail"]
    assert error.response.headers["x-should-retry"] == ("true" if fault.retryable else "false")
    if status in (429, 503):
        assert int(error.response.headers["retry-after"]) >= 1
    if fault.errors:
        assert error.param == "messages[0]"


async def test_its_exceptions_at_the_door(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """OAI-1: what the door itself refuses raises the right class too: a wrong key, a lacking scope, a bad field."""
    _, runs_only = await edge.key("studio", "runs")
    refused: list[tuple[str, type[openai.APIStatusError], str]] = [
        ("wrong", openai.AuthenticationError, "unauthenticated"),
        (runs_only, openai.PermissionDeniedError, "forbidden"),
    ]
    for key, kind, code in refused:
        with pytest.raises(kind) as caught:
            await client.with_options(api_key=key).chat.completions.create(model="m", messages=MESSAGES)
        assert caught.value.code == code
    with pytest.raises(openai.UnprocessableEntityError) as bad:
        await client.chat.completions.create(model="m", messages=MESSAGES, extra_body={"options": {"budget": "b"}})
    assert (bad.value.param, bad.value.type) == ("options.budget", "invalid_request_error")
    with pytest.raises(openai.NotFoundError) as unknown:
        await client.images.edit(model="m", image=b"x", prompt="y")
    assert unknown.value.code == "not_found"


async def test_the_client_repeats_what_may_be_repeated_alone(edge: EdgeHouse, client: AsyncOpenAI) -> None:
    """SYN-2: a client with retries on obeys x-should-retry: what may have been paid for is not sent twice."""
    eager = client.with_options(max_retries=2)
    edge.routing.fault = Fault.of("deadline_exceeded", "no answer within 10 s")
    with pytest.raises(openai.InternalServerError):
        await eager.chat.completions.create(model="m", messages=MESSAGES)
    assert len(edge.routing.asked) == 1
