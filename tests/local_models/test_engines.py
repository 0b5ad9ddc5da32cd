"""Real models behind the same routes. They are an extra, so CI does not run this: `make local-models` comes first."""

import asyncio
import base64
import io
import json

from PIL import Image, ImageDraw, ImageFont

from tests.support.waiting import eventually_async

CHAT, EMBEDDING = "gpt-4o-mini", "text-embedding-3-small"
ASKED = {"model": CHAT, "messages": [{"role": "user", "content": "Name one colour of the sky."}], "max_tokens": 12}


async def test_a_model_answers_the_same_in_one_piece_and_as_it_is_made(client):
    """Greedy, so one answer; it is no answer of the responder; a tool is still called by its schema."""
    chat = client("lumen").chat.completions
    plain = await chat.create(**ASKED)
    said = "".join([c.choices[0].delta.content or "" async for c in await chat.create(**ASKED, stream=True)])
    assert said == plain.choices[0].message.content
    assert said
    assert "responder" not in said
    assert 1 <= plain.usage.completion_tokens <= 12
    tool = {"type": "function", "function": {"name": "paint", "parameters": {"type": "object"}}}
    called = await chat.create(**ASKED, tools=[tool], tool_choice="required")
    assert called.choices[0].finish_reason == "tool_calls"


async def test_a_model_keeps_to_a_schema(client):
    """JSON of the asked shape."""
    schema = {"type": "object", "properties": {"colour": {"enum": ["blue", "green"]}}, "required": ["colour"]}
    form = {"type": "json_schema", "json_schema": {"name": "sky", "schema": schema}}
    made = await client("lumen").chat.completions.create(**ASKED | {"max_tokens": 60}, response_format=form)
    assert json.loads(made.choices[0].message.content)["colour"] in ("blue", "green")


async def test_a_model_stops_when_its_caller_leaves(client, caller):
    """The making ends with the stream: fewer tokens than were allowed are in the ledger."""
    words = [{"role": "user", "content": "Tell me a very long story."}]
    stream = await client("lumen").chat.completions.create(model=CHAT, messages=words, max_tokens=1000, stream=True)
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    await stream.close()

    async def abandoned() -> bool:
        return (await caller.lab("GET", "/ledger"))["calls"]["abandoned"] == 1

    await eventually_async(abandoned)
    (row,) = (await caller.lab("GET", "/ledger"))["submissions"]
    assert 1 <= row["usage"]["completion_tokens"] < 1000


async def test_like_meanings_are_near_without_a_common_word(client):
    """What letters cannot tell: 384 dimensions of a real model."""
    texts = ["The vessel sank in the tempest.", "A ship went down during a storm.", "She peeled three potatoes."]
    made = await client("lumen").embeddings.create(model=EMBEDDING, input=texts)
    one, other, far = (item.embedding for item in made.data)
    assert len(one) == 384
    near, apart = (sum(a * b for a, b in zip(one, two, strict=True)) for two in (other, far))
    assert near > apart + 0.3


async def test_a_page_is_read(caller):
    """The same shape as the studio's own reading."""
    picture = Image.new("RGB", (640, 120), "white")
    ImageDraw.Draw(picture).text((20, 30), "Departures 18:40", font=ImageFont.load_default(size=40), fill="black")
    buffer = io.BytesIO()
    await asyncio.to_thread(picture.save, buffer, "PNG")
    image = {"base64": base64.b64encode(buffer.getvalue()).decode()}
    status, answer = await caller.call("POST", "opal", "/ocr", json={"model": "own-font", "image": image})
    assert (status, answer["text"].split(), answer["pages"]) == (200, ["Departures", "18:40"], 1)
    assert answer["blocks"][0]["confidence"] > 0.9
