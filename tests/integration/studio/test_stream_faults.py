"""Faults of synchronous calls and streams on command, and what the ledger says of them. No client retries."""

import asyncio
import json

import aiohttp
import httpx2
import openai
import pytest

from tests.support.waiting import eventually_async

COUNT = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Count to 50"}]}
BROKEN = (openai.APIError, httpx2.RemoteProtocolError)


async def rule(caller, *then: dict, account: str = "lumen", **more) -> None:
    """A rule for every chat of the account."""
    match = {"account": account, "path": "/chat/completions"}
    await caller.lab("POST", "/script", {"match": match, "then": list(then), **more})


async def heard(stream, most: int = 0, into: list | None = None) -> list:
    """The choices of a stream until it ends, breaks (they are in `into` then) or has said so many tokens."""
    choices = [] if into is None else into
    async for chunk in stream:
        choices += chunk.choices
        if most and len(words(choices)) >= most:
            break
    return choices


def words(choices: list) -> list[str]:
    """The tokens that were said."""
    return [choice.delta.content for choice in choices if choice.delta.content]


async def only_row(caller) -> dict:
    """The one call in the ledger, once it is settled."""

    async def settled() -> bool:
        rows[:] = (await caller.lab("GET", "/ledger"))["submissions"]
        return len(rows) == 1 and rows[0]["status"] != "running"

    rows: list[dict] = []
    await eventually_async(settled)
    return rows[0]


@pytest.mark.parametrize(
    "step, error",
    [
        ({"status": 429, "retry_after": 7}, openai.RateLimitError),
        ({"status": 401}, openai.AuthenticationError),
        ({"status": 503}, openai.InternalServerError),
    ],
)
async def test_a_status_is_answered_before_anything_is_said(client, caller, step, error):
    """The client's own classes, Retry-After where it was asked for, plain and streamed; nothing is accepted."""
    await rule(caller, step, repeat="forever")
    for stream in (False, True):
        with pytest.raises(error) as caught:
            await client("lumen").chat.completions.create(**COUNT, stream=stream)
        assert caught.value.response.headers.get("retry-after") == ("7" if "retry_after" in step else None)
    told = await caller.lab("GET", "/ledger")
    assert (told["totals"]["accepted"], told["refused"]["by_code"]) == (0, {"scripted": 2})


async def test_a_request_can_be_held_before_its_429(client, caller):
    """slow_s beside a status: the answer comes only then."""
    await rule(caller, {"slow_s": 0.3, "status": 429})
    begun = asyncio.get_running_loop().time()
    with pytest.raises(openai.RateLimitError):
        await client("lumen").chat.completions.create(**COUNT)
    assert asyncio.get_running_loop().time() - begun >= 0.3


async def test_a_stream_can_hang_before_its_first_token(client, caller):
    """first_token_s: the status comes, no token; who leaves is written down and costs the prompt alone."""
    await rule(caller, {"first_token_s": 600})
    stream = await client("lumen").chat.completions.create(**COUNT, stream=True)
    await stream.close()
    row = await only_row(caller)
    assert (row["status"], row["usage"]["completion_tokens"]) == ("abandoned", 0)


async def test_a_connection_can_hang_without_a_word(client, caller):
    """hang_s: not even a status."""
    await rule(caller, {"hang_s": 600})
    with pytest.raises(openai.APITimeoutError):
        await client("lumen", timeout=0.3).chat.completions.create(**COUNT, stream=True)
    assert (await caller.lab("GET", "/ledger"))["totals"]["accepted"] == 0


@pytest.mark.parametrize("after", [0, 5])
async def test_a_stream_can_be_cut_after_some_tokens(client, caller, after):
    """cut_after: exactly so many tokens, then the line is dead; the call has failed and costs nothing."""
    await rule(caller, {"cut_after": after})
    stream, choices = await client("lumen").chat.completions.create(**COUNT, stream=True), []
    with pytest.raises(BROKEN):
        await heard(stream, into=choices)
    assert len(words(choices)) == after
    row = await only_row(caller)
    assert (row["status"], row["usage"]["completion_tokens"], row["charged"]["amount"]) == ("failed", after, "0.00")


async def test_a_stream_can_end_in_an_error_event(client, caller):
    """error_after: the client raises what the event says, after the tokens before it."""
    await rule(caller, {"error_after": 3, "code": "server_overloaded", "message": "too much"})
    stream, choices = await client("lumen").chat.completions.create(**COUNT, stream=True), []
    with pytest.raises(openai.APIError, match="too much"):
        await heard(stream, into=choices)
    assert len(words(choices)) == 3
    assert (await only_row(caller))["status"] == "failed"


async def test_moderation_can_end_an_answer(client, caller):
    """content_filter_after, refusal and the marker: finish reasons and the refusal, in a stream and in one piece."""
    await rule(caller, {"content_filter_after": 4}, {"refusal": "I cannot help with that."})
    chat = client("lumen").chat.completions
    choices = await heard(await chat.create(**COUNT, stream=True))
    assert (len(words(choices)), choices[-1].finish_reason) == (4, "content_filter")
    choices = await heard(await chat.create(**COUNT, stream=True))
    assert "".join(choice.delta.refusal or "" for choice in choices) == "I cannot help with that."
    assert (words(choices), choices[-1].finish_reason) == ([], "stop")
    marked = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Say: one two three [moderated-late]"}]}
    assert (await chat.create(**marked)).choices[0].finish_reason == "content_filter"


async def test_an_answer_can_be_lost_after_it_was_made(client, caller):
    """drop_after_body: the caller hears nothing, the call is charged in full, once."""
    await rule(caller, {"drop_after_body": True})
    with pytest.raises(openai.APIConnectionError):
        await client("lumen").chat.completions.create(**COUNT, stream=True)
    row = await only_row(caller)
    assert (row["status"], row["charged"]) == ("succeeded", row["would_charge"])
    assert (await caller.lab("GET", "/ledger"))["posts"]["count"] == 1


async def test_json_can_be_broken(caller):
    """garble: a 200 of the right type whose JSON breaks off, whole by its length; in a stream one event."""
    await rule(caller, {"garble": True}, repeat=2)
    headers = {"Authorization": f"Bearer {caller.studio.key('lumen')}"}
    url = caller.studio.base_url("lumen") + "/chat/completions"
    async with caller.session.post(url, json=COUNT, headers=headers) as answer:
        assert (answer.status, answer.content_type) == (200, "application/json")
        with pytest.raises(json.JSONDecodeError):
            json.loads(await answer.read())
    async with caller.session.post(url, json=COUNT | {"stream": True}, headers=headers) as answer:
        events = (await answer.read()).decode().split("\n\n")
    with pytest.raises(json.JSONDecodeError):
        json.loads(events[1].removeprefix("data: "))


async def test_a_stream_can_be_cut_in_its_bytes(caller):
    """truncate: half the bytes, then the end of the line."""
    await rule(caller, {"truncate": True})
    headers = {"Authorization": f"Bearer {caller.studio.key('lumen')}"}
    url = caller.studio.base_url("lumen") + "/chat/completions"
    with pytest.raises(aiohttp.ClientPayloadError):
        async with caller.session.post(url, json=COUNT | {"stream": True}, headers=headers) as answer:
            await answer.read()


@pytest.mark.parametrize("step", [{"token_gap_s": 30}, {"stall_after": 5, "stall_s": 600}])
async def test_a_slow_stream_stops_being_made_when_its_caller_leaves(client, caller, step):
    """A long gap between tokens: what came before is heard; after the caller left nothing more is made or charged."""
    await rule(caller, step)
    stream, said = await client("lumen").chat.completions.create(**COUNT, stream=True), step.get("stall_after", 1)
    await heard(stream, most=said)
    await stream.close()
    row = await only_row(caller)
    assert (row["status"], row["usage"]["completion_tokens"]) == ("abandoned", said)
    assert row["usage"]["unsaid_tokens"] > 50
    assert float(row["charged"]["amount"]) < float(row["would_charge"]["amount"])
    told = await caller.lab("GET", "/ledger")
    assert (told["calls"]["abandoned"], told["calls"]["in_flight"]) == (1, 0)
    assert (await caller.lab("GET", "/accounts/lumen"))["active"] == 0


async def test_an_answer_in_one_piece_is_abandoned_too(client, caller):
    """A plain call whose caller gave up: abandoned, and its place is free again."""
    await caller.lab("POST", "/accounts/lumen", {"first_token_s": 600})
    call = asyncio.create_task(client("lumen").chat.completions.create(**COUNT))

    async def taken_on() -> bool:
        return (await caller.lab("GET", "/ledger"))["calls"]["in_flight"] == 1

    await eventually_async(taken_on)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    row = await only_row(caller)
    assert (row["status"], row["usage"]["completion_tokens"]) == ("abandoned", 0)


async def test_the_account_sets_the_pace(client, caller):
    """first_token_s and tokens_per_s bound an answer from below; speed divides both."""
    await caller.lab("POST", "/accounts/lumen", {"first_token_s": 0.2, "tokens_per_s": 100, "speed": 2})
    loop = asyncio.get_running_loop()
    begun = loop.time()
    choices = await heard(await client("lumen").chat.completions.create(**COUNT, stream=True, max_tokens=41))
    assert loop.time() - begun >= 0.1 + 40 / 200
    assert len(words(choices)) == 41


async def test_calls_beyond_the_accounts_places_are_refused(client, caller):
    """The most at once is remembered; one more is a 429 with Retry-After, before anything is said."""
    await caller.lab("POST", "/accounts/lumen", {"concurrency": 2, "first_token_s": 600})
    chat = client("lumen").chat.completions
    streams = [await chat.create(**COUNT, stream=True) for _ in range(2)]
    with pytest.raises(openai.RateLimitError) as caught:
        await chat.create(**COUNT)
    assert caught.value.response.headers["retry-after"] == "1"
    told = await caller.lab("GET", "/ledger")
    assert told["calls"]["most_at_once"] == {"lumen": 2}
    for stream in streams:
        await stream.close()
