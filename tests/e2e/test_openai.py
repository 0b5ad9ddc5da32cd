"""The official OpenAI client against the whole product beside real local providers."""

import asyncio
import base64
import io
from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from PIL import Image, ImageDraw, ImageFont

from tests.e2e.conftest import LAYOUTS, layout
from tests.e2e.talking import setting
from tests.support.stack import Stack, running
from tests.support.visitor import until

pytestmark = layout("seven-processes")

HELLO: Any = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module", params=LAYOUTS.values(), ids=LAYOUTS.keys())
def started(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A stack of its own: other accounts, other models. At its end nothing of it may be left."""
    with asyncio.Runner() as runner:
        context = running(request.param, setting())
        stack = runner.run(context.__aenter__())
        yield stack
        runner.run(context.__aexit__(None, None, None))
        assert stack.said == []


@pytest.fixture
async def stack(started: Stack) -> AsyncIterator[Stack]:
    """The stack with its sessions open."""
    async with started.visit():
        yield started


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[AsyncOpenAI]:
    """The client; it repeats nothing."""
    async with AsyncOpenAI(base_url=f"{stack.url}/v1", api_key=stack.key, max_retries=0) as made:
        yield made


async def posts(stack: Stack, account: str) -> int:
    """How many requests the provider has had, accepted or not."""
    book = await stack.lab.ledger(account)
    return len(book["submissions"]) + int(book["refused"]["by_account"].get(account, 0))


async def ended(stack: Stack, call_id: str) -> dict[str, Any]:
    """The record of a call, once its books are closed: that is after its caller has the answer."""
    return await until(lambda: stack.api.get(f"/v1/calls/{call_id}"), lambda call: call["status"] != "running")


async def test_a_chat(stack: Stack, client: AsyncOpenAI) -> None:
    """OAI-1: a completion of a real provider, with what the provider counted; one request was sent."""
    before = await posts(stack, "easy")
    raw = await client.chat.completions.with_raw_response.create(model="talk", messages=HELLO)
    found = raw.parse()
    assert (found.model, found.choices[0].finish_reason) == ("talk", "stop")
    assert found.choices[0].message.content
    assert found.usage is not None
    assert found.usage.total_tokens == found.usage.prompt_tokens + found.usage.completion_tokens > 1
    assert raw.headers["pointsman-supply"] == "easy/chat"
    assert raw.headers["pointsman-cost"].endswith(" USD")
    assert await posts(stack, "easy") == before + 1
    call = await ended(stack, raw.headers["pointsman-call"])
    assert (call["status"], call["supply"], len(call["attempts"])) == ("succeeded", "easy/chat", 1)
    assert call["usage"]["output_tokens"] == found.usage.completion_tokens
    assert call["selections"][0]["chosen"] == "easy/chat"
    times = call["times"]
    parts = times["productive_ms"] + times["stall_ms"] + times["overhead_ms"]
    assert times["wall_ms"] == pytest.approx(parts)


async def test_a_stream(client: AsyncOpenAI) -> None:
    """OAI-1: a streamed completion says what a whole one says, with the figures at its end."""
    whole = await client.chat.completions.create(model="talk", messages=HELLO)
    stream = await client.chat.completions.create(
        model="talk", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert len(chunks) > 3
    assert chunks[-1].usage is not None
    assert chunks[-1].usage == whole.usage
    assert {chunk.id for chunk in chunks} == {chunks[0].id}


async def test_several_choices(stack: Stack, client: AsyncOpenAI) -> None:
    """COST-8: two choices are one call, quoted for both; the usage counts both."""
    one = await client.chat.completions.create(model="talk", messages=HELLO, max_tokens=50)
    two = await client.chat.completions.create(model="talk", messages=HELLO, max_tokens=50, n=2)
    assert [choice.index for choice in two.choices] == [0, 1]
    assert one.usage is not None
    assert two.usage is not None
    assert two.usage.completion_tokens == 2 * one.usage.completion_tokens
    quotes = [
        float((await ended(stack, found.id.removeprefix("chatcmpl-")))["attempts"][0]["quote"]["amount"])
        for found in (one, two)
    ]
    assert quotes[0] < quotes[1] <= 2 * quotes[0]


async def test_a_switch_that_nobody_notices(stack: Stack, client: AsyncOpenAI) -> None:
    """SYN-1: a provider that fails is left for another within one call; the record tells both tries."""
    await stack.lab.script("shaky", {"status": 500})
    raw = await client.chat.completions.with_raw_response.create(model="relay", messages=HELLO)
    assert raw.parse().choices[0].message.content
    assert raw.headers["pointsman-supply"] == "firm/chat"
    call = await ended(stack, raw.headers["pointsman-call"])
    assert [(item["supply"], item["state"]) for item in call["attempts"]] == [
        ("shaky/chat", "failed"),
        ("firm/chat", "succeeded"),
    ]


async def test_a_provider_that_is_full(stack: Stack, client: AsyncOpenAI) -> None:
    """SYN-4: a 429 of every provider is a 429 with its Retry-After, and each was asked once."""
    before = await posts(stack, "busy")
    await stack.lab.script("busy", {"status": 429, "retry_after": 7})
    with pytest.raises(openai.RateLimitError) as caught:
        await client.chat.completions.create(model="full", messages=HELLO)
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 7
    assert await posts(stack, "busy") == before + 1


async def test_a_provider_that_is_locked(stack: Stack, client: AsyncOpenAI) -> None:
    """HLT-8: a refused key opens the Channel at once; calls are then 503 with Retry-After, and nothing is sent."""
    await stack.lab.script("locked", {"status": 401}, repeat="forever")
    with pytest.raises(openai.InternalServerError):
        await client.chat.completions.create(model="closed", messages=HELLO)
    await until(lambda: stack.api.health_of("channels", "locked"), lambda seen: seen["state"] == "circuit_open")
    before = await posts(stack, "locked")

    async def refused() -> openai.APIStatusError:
        with pytest.raises(openai.InternalServerError) as caught:
            await client.chat.completions.create(model="closed", messages=HELLO)
        return caught.value

    error = await until(refused, lambda seen: seen.status_code == 503)
    assert int(error.response.headers["retry-after"]) >= 1
    assert error.code == "circuit_open_all"
    assert await posts(stack, "locked") - before <= 1


async def test_a_stream_that_breaks(stack: Stack, client: AsyncOpenAI) -> None:
    """SYN-8: a stream cut by its provider after some tokens is raised by the client, and nobody else is asked."""
    before = await posts(stack, "tearing-spare")
    await stack.lab.script("tearing", {"cut_after": 4})
    seen: list[str] = []

    async def read() -> None:
        stream = await client.chat.completions.create(model="torn", messages=HELLO, stream=True)
        async for chunk in stream:
            seen.extend(choice.delta.content or "" for choice in chunk.choices)

    with pytest.raises(openai.APIError) as caught:
        await read()
    assert "".join(seen)
    assert caught.value.code == "stream_interrupted"
    assert await posts(stack, "tearing-spare") == before


async def test_a_client_that_leaves(stack: Stack, client: AsyncOpenAI) -> None:
    """SYN-8: a client that closes its stream gives the call up; the record says so, and its slot is free."""
    await stack.lab.script("easy", {"stall_after": 2, "stall_s": 60})
    stream = await client.chat.completions.create(model="talk", messages=HELLO, stream=True)
    chunk = await anext(aiter(stream))
    await stream.close()
    assert (await ended(stack, chunk.id.removeprefix("chatcmpl-")))["status"] == "abandoned"
    await until(lambda: stack.api.capacity_of("supplies", "easy/chat"), lambda seen: seen["in_use"] == 0)


async def test_embeddings(client: AsyncOpenAI) -> None:
    """OAI-1: vectors as numbers, in the order of the texts, equal however they are spelt on the way."""
    packed = await client.embeddings.create(model="vectors", input=["a lake", "a crane"])
    plain = await client.embeddings.create(model="vectors", input=["a lake", "a crane"], encoding_format="float")
    assert [item.index for item in packed.data] == [0, 1]
    for one, other in zip(packed.data, plain.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)
    assert plain.usage.prompt_tokens > 0


async def test_many_embeddings(client: AsyncOpenAI) -> None:
    """SYN-11: an answer of many megabytes, put together from batches, reaches its caller: it is paid for."""
    texts = [f"lake {number}" for number in range(1200)]
    raw = await client.embeddings.with_raw_response.create(model="vectors", input=texts, encoding_format="float")
    assert len(raw.content) > 4 * 1024 * 1024
    assert [item.index for item in raw.parse().data] == list(range(1200))


async def test_images_and_speech(stack: Stack, client: AsyncOpenAI) -> None:
    """OAI-1: a picture by address and by bytes, and speech as sound."""
    found = await client.images.generate(model="pictures", prompt="a lake", size="1024x1024")
    (picture,) = found.data or ()
    assert picture.url is not None
    read = await stack.api.ask("GET", picture.url.removeprefix(stack.url))
    assert read.headers["content-type"].startswith("image/")
    found = await client.images.generate(model="pictures", prompt="a lake", response_format="b64_json")
    (picture,) = found.data or ()
    assert len(base64.b64decode(picture.b64_json or "")) > 1000
    spoken = await client.audio.speech.create(model="voice", voice="alloy", input="Hello")
    assert spoken.response.headers["content-type"].startswith("audio/")
    assert len(spoken.content) > 500


def page() -> dict[str, str]:
    """A picture with words, as a material."""
    content = io.BytesIO()
    drawn = Image.new("L", (360, 100), 255)
    ImageDraw.Draw(drawn).text((20, 30), "NEMO 42", font=ImageFont.load_default(size=32), fill=0)
    drawn.save(content, "PNG")
    return {"base64": base64.b64encode(content.getvalue()).decode(), "media_type": "image/png"}


async def test_a_picture_is_read(stack: Stack) -> None:
    """SYN-11: /v1/ocr reads a picture that came as bytes; blocks have their place, and a page its price."""
    body = {"model": "reader", "image": page(), "task": "parse_layout"}
    answer = await stack.api.ask("POST", "/v1/ocr", json=body)
    assert answer.status == 200, answer.body
    assert answer.json["text"] == "NEMO 42"
    (block,) = answer.json["blocks"]
    left, top, width, height = block["box"]
    assert 0 < left < 60
    assert 0 < top < 70
    assert width > 60
    assert height > 10
    assert answer.headers["pointsman-cost"] == "0.01 USD"


def step(name: str, model: str, **given: Any) -> dict[str, Any]:
    """A node of a production."""
    return {"id": name, "kind": "generate", "model": model, "input": given}


async def test_a_production_uses_every_kind_of_request(stack: Stack) -> None:
    """RUN-4, RUN-7, COST-8: a page is read, a chat is asked about its words, and what it says is a file, stands in the
    prompts of a picture and of a voice, and becomes vectors. Every node is one Task with one paid attempt."""
    ask = [{"role": "user", "content": "Write ${inputs.title} about ${read.output.text}"}]
    nodes = [
        step("read", "reader", image="${inputs.page}"),
        step("script", "talk", messages=ask, max_tokens=20),
        step("frame", "pictures", prompt="${script.output.text}"),
        step("voice", "voice", text="${script.output.text}", voice="alloy"),
        step("vectors", "vectors", input=["${script.output.text}", "a boat"]),
    ]
    budget = {"currency": "USD", "cost": "1.00"}
    document = {"production": "words", "budget": budget, "inputs": {"title": "a line", "page": page()}, "nodes": nodes}
    run_id = (await stack.api.call("POST", "/v1/runs", body={"production": document}))["id"]
    ended = {"succeeded", "failed", "dead_letter", "cancelled"}
    run = await until(lambda: stack.api.run(run_id), lambda now: now["status"] in ended, 60)
    assert run["status"] == "succeeded", run
    made = {node["id"]: node for node in run["nodes"]}
    (file,) = made["script"]["artifacts"]
    text = (await stack.api.ask("GET", f"/v1/artifacts/{file['sha256']}")).body.decode()
    assert (file["media_type"], bool(text)) == ("text/plain", True)
    inputs = {
        event["data"]["node"]: event["data"]["input"]
        for event in await stack.api.events_of(run_id)
        if event["kind"] == "node_ready"
    }
    assert inputs["script"]["messages"][0]["content"] == "Write a line about NEMO 42"
    assert inputs["frame"] == {"prompt": text}
    assert inputs["voice"]["text"] == text
    assert run["result"]["output"]["vectors"] == {"count": 2, "dimensions": 1536}
    types = {name: [each["media_type"] for each in node["artifacts"]] for name, node in made.items()}
    assert types["read"] == ["text/plain", "application/json"]
    assert types["vectors"] == ["application/json"]
    assert types["voice"][0].startswith("audio/")
    for node in made.values():
        task = await stack.api.get(f"/v1/tasks/{node['task_id']}")
        (attempt,) = task["attempts"]
        assert 0 < float(attempt["cost"]["amount"]) <= float(attempt["quote"]["amount"])


async def test_models(client: AsyncOpenAI) -> None:
    """OAI-2: the models of the catalogue with their kind and what they cost."""
    listed = {model.id: model.model_extra or {} for model in (await client.models.list()).data}
    assert listed["talk"]["kind"] == "chat"
    assert listed["talk"]["price_range"][0]["currency"] == "USD"
    assert (await client.models.retrieve("voice")).id == "voice"


async def test_its_exceptions(client: AsyncOpenAI) -> None:
    """OAI-1: what the product refuses raises the client's right class."""
    with pytest.raises(openai.NotFoundError):
        await client.chat.completions.create(model="nobody", messages=HELLO)
    with pytest.raises(openai.UnprocessableEntityError) as wrong:
        await client.chat.completions.create(model="talk", messages=[{"content": "x"}])  # type: ignore[list-item]  # no role
    assert wrong.value.param == "messages[0]"
    with pytest.raises(openai.UnprocessableEntityError):
        await client.chat.completions.create(model="voice", messages=HELLO)
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="wrong").chat.completions.create(model="talk", messages=HELLO)


async def test_tenants_do_not_see_each_other(stack: Stack, client: AsyncOpenAI) -> None:
    """AUTH-1: a call, and the picture that came of it, are the tenant's own."""
    body = {"tenant": "stranger", "scopes": ["invoke"]}
    other = (await stack.api.call("POST", "/v1/operator/keys", body=body))["key"]
    raw = await client.images.with_raw_response.generate(model="pictures", prompt="a crane")
    (picture,) = raw.parse().data or ()
    call = f"/v1/calls/{raw.headers['pointsman-call']}"
    async with stack.as_holder(other) as stranger:
        for path in (call, (picture.url or "").removeprefix(stack.url)):
            answer = await stranger.ask("GET", path)
            assert (answer.status, answer.json["code"]) == (404, "not_found")
