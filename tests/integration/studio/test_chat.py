"""Chat in the OpenAI dialect, over a real socket, with the official client and none of its own retries."""

import json

import openai
import pytest

CHAT = "gpt-4o-mini"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def asked(words: str) -> list:
    """A conversation of one question."""
    return [{"role": "user", "content": words}]


async def said(stream) -> tuple[str, str | None, list]:
    """The words of a stream, why it ended, and the usage it told."""
    words, finish, usage = "", None, []
    async for chunk in stream:
        usage += [chunk.usage] if chunk.usage else []
        for choice in chunk.choices:
            words += choice.delta.content or ""
            finish = choice.finish_reason or finish
    return words, finish, usage


async def test_a_question_is_answered_the_same_in_one_piece_and_streamed(client):
    """One answer for one question: plain, again, at the other account and token by token; usage is the same."""
    question = {"model": CHAT, "messages": asked("What is 17 + 25?")}
    lumen, moss = client("lumen"), client("moss")
    plain = await lumen.chat.completions.create(**question)
    assert (plain.choices[0].message.content, plain.choices[0].finish_reason) == ("17 + 25 = 42", "stop")
    assert plain.usage.total_tokens == plain.usage.prompt_tokens + plain.usage.completion_tokens
    other = await moss.chat.completions.create(**question)
    assert other.choices[0].message.content == plain.choices[0].message.content
    stream = await lumen.chat.completions.create(**question, stream=True, stream_options={"include_usage": True})
    assert await said(stream) == ("17 + 25 = 42", "stop", [plain.usage])
    stream = await lumen.chat.completions.create(**question, stream=True)
    assert await said(stream) == ("17 + 25 = 42", "stop", [])


async def test_max_tokens_ends_an_answer_with_length(client):
    """Exactly so many tokens are said and counted, in one piece and streamed."""
    question = {"model": CHAT, "messages": asked("Count to 100"), "max_completion_tokens": 7}
    plain = await client("lumen").chat.completions.create(**question)
    assert (plain.choices[0].finish_reason, plain.usage.completion_tokens) == ("length", 7)
    stream = await client("lumen").chat.completions.create(**question, stream=True)
    assert await said(stream) == (plain.choices[0].message.content, "length", [])


async def test_a_stop_and_several_choices(client):
    """The words before the stop, and n answers under their index."""
    question = {"model": CHAT, "messages": asked("Say: one, two, three"), "stop": ", three", "n": 2}
    plain = await client("lumen").chat.completions.create(**question)
    assert [(choice.index, choice.message.content) for choice in plain.choices] == [(0, "one, two"), (1, "one, two")]


async def test_a_tool_is_called_when_it_must_be_and_its_answer_is_told(client):
    """A forced call has arguments of the schema; streamed they arrive in pieces; the tool's answer becomes words."""
    chat = client("lumen").chat.completions
    question = {"model": CHAT, "messages": asked("Is it warm in Paris today?"), "tools": [WEATHER]}
    forced = {"type": "function", "function": {"name": "get_weather"}}
    plain = await chat.create(**question, tool_choice=forced)
    (call,) = plain.choices[0].message.tool_calls
    assert (plain.choices[0].finish_reason, call.function.name) == ("tool_calls", "get_weather")
    assert json.loads(call.function.arguments) == {"city": "Paris"}
    pieces, names = "", []
    async for chunk in await chat.create(**question, tool_choice="required", stream=True):
        for part in chunk.choices[0].delta.tool_calls or ():
            names += [part.function.name] if part.function.name else []
            pieces += part.function.arguments or ""
    assert (names, json.loads(pieces)) == (["get_weather"], {"city": "Paris"})
    history = [*question["messages"], plain.choices[0].message.model_dump(exclude_none=True)]
    history.append({"role": "tool", "tool_call_id": call.id, "content": "18 degrees"})
    told = await chat.create(model=CHAT, messages=history, tools=[WEATHER])
    assert told.choices[0].message.content == "get_weather says: 18 degrees"


async def test_json_is_valid_and_follows_its_schema(client):
    """json_object parses; json_schema has the asked fields with values that its bounds admit."""
    chat = client("lumen").chat.completions
    question = {"model": CHAT, "messages": asked("Rate the lighthouse from 1 to 5, in JSON")}
    plain = await chat.create(**question, response_format={"type": "json_object"})
    assert isinstance(json.loads(plain.choices[0].message.content), dict)
    schema = {
        "type": "object",
        "properties": {
            "rating": {"type": "integer", "minimum": 3, "maximum": 5},
            "mood": {"enum": ["calm", "wild"]},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        },
        "required": ["rating", "mood", "tags"],
    }
    form = {"type": "json_schema", "json_schema": {"name": "rating", "schema": schema}}
    made = json.loads((await chat.create(**question, response_format=form)).choices[0].message.content)
    assert set(made) == {"rating", "mood", "tags"}
    assert (3 <= made["rating"] <= 5, made["mood"], len(made["tags"])) == (True, "calm", 2)


@pytest.mark.parametrize(
    "change, error, param, code",
    [
        ({"model": "gpt-0"}, openai.NotFoundError, "model", "model_not_found"),
        ({"model": "text-embedding-3-small"}, openai.NotFoundError, "model", "model_not_found"),
        ({"messages": []}, openai.BadRequestError, "messages", "missing_required_parameter"),
        ({"messages": asked("x " * 40000)}, openai.BadRequestError, "messages", "context_length_exceeded"),
        ({"max_tokens": 0}, openai.BadRequestError, "max_tokens", "invalid_value"),
        ({"temperature": 3}, openai.BadRequestError, "temperature", "invalid_value"),
        ({"reasoning_effort": "low"}, openai.BadRequestError, "reasoning_effort", "unsupported_parameter"),
        ({"messages": asked("[moderated]")}, openai.BadRequestError, None, "moderation_blocked"),
    ],
)
async def test_a_bad_request_names_its_parameter_and_costs_nothing(client, caller, change, error, param, code):
    """The client's own exception classes, the parameter, the provider's code; nothing is accepted."""
    with pytest.raises(error) as caught:
        await client("moss").chat.completions.create(**{"model": CHAT, "messages": asked("hi")} | change)
    assert (caught.value.param, caught.value.code) == (param, code)
    assert (await caller.lab("GET", "/ledger"))["totals"]["accepted"] == 0


async def test_a_wrong_key_is_an_authentication_error(client):
    """401 with the provider's code."""
    with pytest.raises(openai.AuthenticationError):
        await client("lumen", api_key="no").chat.completions.create(model=CHAT, messages=asked("hi"))


async def test_models_are_listed_and_found(client):
    """The list has the chat and the embedding model; each is found by its id."""
    models = client("lumen").models
    assert {model.id async for model in models.list()} == {CHAT, "text-embedding-3-small"}
    assert (await models.retrieve(CHAT)).id == CHAT
    with pytest.raises(openai.NotFoundError):
        await models.retrieve("gpt-0")


async def test_the_ledger_counts_tokens_and_their_price(client, caller):
    """Every call is in the ledger with what it used and cost: input and output at their own rates."""
    plain = await client("lumen").chat.completions.create(model=CHAT, messages=asked("Count to 50"))
    stream = await client("moss").chat.completions.create(model=CHAT, messages=asked("Count to 50"), stream=True)
    await said(stream)
    told = await caller.lab("GET", "/ledger")
    prompt, completion = plain.usage.prompt_tokens, plain.usage.completion_tokens
    rows = {row["account"]: row for row in told["submissions"]}
    used = {"prompt_tokens": prompt, "completion_tokens": completion}
    assert [row["usage"] for row in rows.values()] == [used, used]
    assert float(rows["lumen"]["charged"]["amount"]) == pytest.approx((0.15 * prompt + 0.6 * completion) / 1e6)
    assert rows["moss"]["charged"]["currency"] == "CNY"
    assert told["calls"]["by_kind"]["chat"]["usage"] == {name: 2 * count for name, count in used.items()}
