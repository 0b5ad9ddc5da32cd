"""Synchronous calls: what goes on to routing, what comes back, what is refused."""

import asyncio
import base64
import json
from typing import Any

import pytest

from libs.faults.fault import Fault
from pointsman.common.v1 import artifact_pb2
from pointsman.routing.v1 import task_pb2
from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_problems import check, pointers
from tests.support.media import picture

CHAT = "/v1/chat/completions"
HELLO = {"model": "chat-small", "messages": [{"role": "user", "content": "Hello"}]}


def caller(edge: EdgeHouse, tenant: str = "studio") -> Any:
    """A client with scope `invoke`."""
    return edge.user(tenant, "invoke")


async def test_a_chat_goes_on_as_it_came(edge: EdgeHouse) -> None:
    """OAI-1: the conversation reaches routing as the bytes that came, without the fields of the door."""
    body = b'{"model":"chat-small","stream":false,"n":2,"messages":[ {"role":"user", "content":"\xc3\xa9"} ],"seed":7}'
    async with await caller(edge) as client:
        answer = await client.post(CHAT, content=body, headers={"content-type": "application/json"})
    (asked,) = edge.routing.asked
    assert asked.input == b'{"n":2,"messages":[ {"role":"user", "content":"\xc3\xa9"} ],"seed":7}'
    assert (asked.tenant, asked.model, asked.kind) == ("studio", "chat-small", "chat")
    assert not asked.options.HasField("timeout")
    told = answer.json()
    assert (told["id"], told["object"], told["model"]) == (f"chatcmpl-{asked.call_id}", "chat.completion", "chat-small")
    assert told["choices"][0]["message"]["content"] == "Good day."
    assert told["usage"] == {
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    assert "upstream" not in answer.text
    assert "provider_secret" not in told
    headers = answer.headers
    assert (headers["pointsman-call"], headers["pointsman-supply"]) == (asked.call_id, "ark-main/chat")
    assert headers["pointsman-cost"] == "0.0012 USD"
    assert "pointsman-cache" not in headers


async def test_the_providers_own_usage_is_completed(edge: EdgeHouse) -> None:
    """OAI-1: what the provider said of usage stays; what only we know of its parts is added."""
    told = {
        "prompt_tokens": 8,
        "completion_tokens": 2,
        "total_tokens": 10,
        "prompt_tokens_details": {"audio_tokens": 1},
    }
    output = json.loads(edge.routing.outputs["chat"]) | {"usage": told, "system_fingerprint": "fp"}
    edge.routing.outputs["chat"] = json.dumps(output).encode()
    async with await caller(edge) as client:
        found = (await client.post(CHAT, json=HELLO)).json()
    assert found["usage"]["prompt_tokens"] == 8
    assert found["usage"]["prompt_tokens_details"] == {"cached_tokens": 4, "audio_tokens": 1}
    assert found["system_fingerprint"] == "fp"


async def test_options_in_the_body_and_in_headers(edge: EdgeHouse) -> None:
    """SYN-11: options come in the body or in headers; the body goes before the header."""
    body = {**HELLO, "options": {"degradation": "strict", "timeout_s": 20, "deadline_s": 12.5, "cache": False}}
    headers = {"Pointsman-Degradation": "best_effort", "Pointsman-Session": "s1", "Pointsman-Parent": "c0"}
    async with await caller(edge) as client:
        assert (await client.post(CHAT, json=body, headers=headers)).status_code == 200
        only = {"Pointsman-Timeout": "7.5", "Pointsman-Cache": "no"}
        assert (await client.post(CHAT, json=HELLO, headers=only)).status_code == 200
        cached = {**HELLO, "options": {"cache": True}}
        assert (await client.post(CHAT, json=cached, headers={"Pointsman-Cache": "no"})).status_code == 200
    first, second, third = (asked.options for asked in edge.routing.asked)
    assert (first.degradation, first.session_id, first.parent_call_id, first.skip_cache) == ("strict", "s1", "c0", True)
    assert first.timeout.ToMilliseconds() == 12_500
    assert (second.timeout.ToMilliseconds(), second.skip_cache, second.session_id) == (7500, True, "")
    assert not third.skip_cache, "the body asks for it"


@pytest.mark.parametrize(
    "more, headers, named",
    [
        ({"model": None}, {}, ["/model"]),
        ({"model": 7}, {}, ["/model"]),
        ({"stream": "yes"}, {}, ["/stream"]),
        ({"stream_options": {"include_usage": True}}, {}, ["/stream_options"]),
        ({"stream": True, "stream_options": {"usage": True}}, {}, ["/stream_options/usage"]),
        ({"options": {"budget": "b", "cache": "no"}}, {}, ["/options/budget", "/options/cache"]),
        ({"options": {"timeout_s": 4000}}, {}, ["/options/timeout_s"]),
        ({"options": {"session_id": "a\x00"}}, {}, ["/options/session_id"]),
        ({"options": []}, {}, ["/options"]),
        ({}, {"Pointsman-Timeout": "soon"}, ["/header/pointsman-timeout"]),
        ({}, {"Pointsman-Timeout": "0"}, ["/header/pointsman-timeout"]),
        ({}, {"Pointsman-Cache": "maybe", "Pointsman-Degradation": "x"},
         ["/header/pointsman-cache", "/header/pointsman-degradation"]),
        ({"user": "a\x00b"}, {}, ["/user"]),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "ftp://x/y"}}]}]}, {},
         ["/messages/0/content/0/image_url/url"]),
    ],
)  # fmt: skip
async def test_what_a_chat_may_not_say(
    edge: EdgeHouse, more: dict[str, Any], headers: dict[str, str], named: list[str]
) -> None:
    """EDG-1: each wrong field of the door is named, and nothing reaches routing."""
    async with await caller(edge) as client:
        answer = await client.post(CHAT, json={**HELLO, **more}, headers=headers)
    assert pointers(check(answer, 422, "validation_failed")) == named
    assert edge.routing.asked == []


@pytest.mark.parametrize(
    "raw, status, code",
    [
        (b"", 400, "malformed_request"),
        (b'{"model":', 400, "malformed_request"),
        (b'{"model":"m","messages":"\xff"}', 400, "malformed_request"),
        (b"[1]", 422, "validation_failed"),
        (b'{"messages":' + b"[" * 80 + b"]" * 80 + b"}", 400, "malformed_request"),
        (b'{"messages":' + b"[" * 5000 + b"]" * 5000 + b"}", 400, "malformed_request"),
        (b'{"model":"m","messages":[{"role":"user","content":"a\\u0000"}]}', 422, "validation_failed"),
    ],
)
async def test_bodies_that_cannot_be_read(edge: EdgeHouse, raw: bytes, status: int, code: str) -> None:
    """EDG-3: whatever is no JSON object, too deep or holds a NUL is a problem before routing is asked."""
    async with await caller(edge) as client:
        check(await client.post(CHAT, content=raw, headers={"content-type": "application/json"}), status, code)
        check(await client.post(CHAT, data={"model": "m"}), 415, "unsupported_media_type")
    assert edge.routing.asked == []


async def test_a_conversation_is_bounded(edge: EdgeHouse) -> None:
    """EDG-3: what does not fit between contexts is 413 with the remedy."""
    body = {**HELLO, "messages": [{"role": "user", "content": "x" * 51_000_000}]}
    async with await caller(edge) as client:
        problem = check(await client.post(CHAT, json=body), 413, "payload_too_large")
    assert "/v1/artifacts" in problem["detail"]


@pytest.mark.parametrize("escaped", [False, True])
async def test_pictures_of_a_chat_are_public(tmp_path: Any, edge: EdgeHouse, escaped: bool) -> None:
    """AUTH-4: an address that a provider would fetch is judged also deep inside a conversation, however it is spelt."""
    url = "http://169.254.169.254/latest"
    parts = [{"type": "image_url", "image_url": {"url": url, "detail": "low"}}]
    raw = json.dumps({**HELLO, "messages": [{"role": "user", "content": parts}]})
    if escaped:
        raw = raw.replace('"url"', '"\\u0075rl"').replace("http:", "\\u0068ttp:")
    async with await caller(edge) as client:
        answer = await client.post(CHAT, content=raw, headers={"content-type": "application/json"})
        problem = check(answer, 422, "url_not_allowed")
        assert pointers(problem) == ["/messages/0/content/0/image_url/url"]
        file = [{"type": "file", "file": {"file_data": url}}]
        asked = json.dumps({**HELLO, "messages": [{"role": "user", "content": file}]})
        asked = asked.replace("file_data", "\\u0066ile_data") if escaped else asked
        answer = await client.post(CHAT, content=asked, headers={"content-type": "application/json"})
        problem = check(answer, 422, "url_not_allowed")
        assert pointers(problem) == ["/messages/0/content/0/file/file_data"]
        parts[0]["image_url"]["url"] = "data:image/png;base64,AAAA"  # type: ignore[index]  # a dict
        assert (await client.post(CHAT, json={**HELLO, "messages": [{"role": "user", "content": parts}]})).is_success


async def test_every_answer_tells_its_call(edge: EdgeHouse) -> None:
    """SYN-11: a failed call is found by the id in its answer's headers as a good one is."""
    edge.routing.fault = Fault.of("retry_exhausted", "3 of 3 tries failed")
    async with await caller(edge) as client:
        answer = await client.post(CHAT, json=HELLO)
    check(answer, 502, "retry_exhausted")
    assert answer.headers["pointsman-call"] == edge.routing.asked[0].call_id


@pytest.mark.parametrize("code", ["quota_full", "capacity_exhausted", "circuit_open_all", "no_sources", "stalled"])
async def test_429_and_503_tell_when_to_come_again(edge: EdgeHouse, code: str) -> None:
    """EDG-3: every 429 and 503 that may be repeated has a Retry-After, the provider's own where it is known."""
    async with await caller(edge) as client:
        edge.routing.fault = Fault.of(code, "not now")
        assert int((await client.post(CHAT, json=HELLO)).headers["retry-after"]) >= 1
        edge.routing.fault = Fault.of(code, "not now", retry_after_ms=6100)
        assert (await client.post(CHAT, json=HELLO)).headers["retry-after"] == "7"


async def test_degradation_and_cache_are_told(edge: EdgeHouse) -> None:
    """TIER-6: a degraded answer says so in headers and, in our own shape, in the body; SYN-10: so does a cached one."""
    lost = task_pb2.Degradation(
        rule_id="r", requested_profile="933", actual_profile="900", dropped_inputs=["reference_videos"]
    )
    edge.routing.changes = {"degradation": lost, "cached": True, "supply_id": ""}
    async with await caller(edge) as client:
        headers = (await client.post(CHAT, json=HELLO)).headers
        result = (await client.post("/v1/invoke", json={"model": "m", "input": {"messages": []}})).json()
    assert (headers["pointsman-degraded"], headers["pointsman-cache"]) == ("true", "hit")
    assert headers["pointsman-requested-profile"] == "933"
    assert headers["pointsman-actual-profile"] == "900"
    assert headers["pointsman-dropped-inputs"] == "reference_videos"
    assert "pointsman-supply" not in headers
    assert (result["degraded"], result["cached"], result["dropped_inputs"]) == (True, True, ["reference_videos"])
    assert (result["requested_profile"], result["actual_profile"]) == ("933", "900")


async def test_invoke_in_our_own_shape(edge: EdgeHouse) -> None:
    """SYN-1: /v1/invoke serves any synchronous kind; its answer has the output, the usage and the id of the call."""
    body = {"model": "chat-small", "input": {"messages": [{"role": "user", "content": "Hello"}]}}
    async with await caller(edge) as client:
        result = (await client.post("/v1/invoke", json={**body, "options": {"priority": "high"}})).json()
    (asked,) = edge.routing.asked
    assert (asked.kind, json.loads(asked.input)) == ("", body["input"])
    assert (result["id"], result["model"], result["kind"]) == (asked.call_id, "chat-small", "chat")
    assert result["output"]["choices"][0]["message"]["content"] == "Good day."
    assert result["usage"]["cost"] == {"currency": "USD", "amount": "0.0012"}
    assert (result["usage"]["supply"], result["usage"]["attempts"]) == ("ark-main/chat", 1)
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (9, 3)


@pytest.mark.parametrize(
    "body, named",
    [
        ({"model": "m"}, ["/input"]),
        ({"model": "m", "input": "x"}, ["/input"]),
        ({"model": "m", "input": {}, "stream": True}, ["/stream"]),
        ({"input": {}}, ["/model"]),
        ({"model": "m", "input": {"image": "x"}}, []),
        ({"model": "m", "input": {"image": {"url": 7}}}, ["/input/image/url"]),
        ({"model": "m", "input": {"prompt": "a\x00"}}, ["/input/prompt"]),
        ({"model": "m", "input": {"messages": [], "stream": True}}, ["/input/stream"]),
    ],
)
async def test_what_an_invoke_may_not_say(edge: EdgeHouse, body: dict[str, Any], named: list[str]) -> None:
    """EDG-1: the same care for our own route; what only the kind can judge goes on to routing."""
    async with await caller(edge) as client:
        answer = await client.post("/v1/invoke", json=body)
    if named:
        assert pointers(check(answer, 422, "validation_failed")) == named
    assert len(edge.routing.asked) == (0 if named else 1)


async def test_pictures_to_be_read_become_artifacts(edge: EdgeHouse) -> None:
    """AUTH-1: bytes for OCR are kept as an artifact of the tenant, and routing is given the digest alone."""
    encoded = base64.b64encode(picture()).decode()
    async with await caller(edge) as client:
        body = {"model": "reader", "image": {"base64": encoded, "media_type": "image/png"}, "task": "parse_layout"}
        answer = await client.post("/v1/ocr", json=body)
        (asked,) = edge.routing.asked
        sent = json.loads(asked.input)
        kept = await client.get(f"/v1/artifacts/{sent['image']['artifact']}")
        foreign = {"model": "reader", "image": {"artifact": "ab" * 32}}
        refused = check(await client.post("/v1/ocr", json=foreign), 422, "validation_failed")
    assert asked.kind == "ocr"
    assert (sent["task"], list(sent["image"])) == ("parse_layout", ["artifact"])
    assert kept.content == picture()
    assert pointers(refused) == ["/image/artifact"]
    told = answer.json()
    assert (told["text"], told["blocks"][0]["box"], told["id"]) == ("NEMO", [1, 2, 30, 9], asked.call_id)


async def test_routings_words_point_into_this_body(edge: EdgeHouse) -> None:
    """EDG-1: routing judges the input; on routes where its fields stand at the top, pointers and words say so."""
    async with await caller(edge) as client:
        edge.routing.fault = Fault.invalid(("/input/messages/0", "must be a message with a role"))
        problem = check(await client.post(CHAT, json=HELLO), 422, "validation_failed")
        assert (pointers(problem), problem["detail"]) == (
            ["/messages/0"],
            "/messages/0 must be a message with a role",
        )
        assert problem["error"]["param"] == "messages[0]"
        edge.routing.fault = Fault.invalid(("/input/text", "is too long"), ("/options/timeout", "is too short"))
        problem = check(
            await client.post("/v1/audio/speech", json={"model": "m", "input": "x"}), 422, "validation_failed"
        )
        assert pointers(problem) == ["/input", "/options/timeout_s"]
        edge.routing.fault = Fault.invalid(("/input/text", "is too long"))
        own = check(
            await client.post("/v1/invoke", json={"model": "m", "input": {"text": "x"}}), 422, "validation_failed"
        )
        assert pointers(own) == ["/input/text"]


async def test_a_call_on_record(edge: EdgeHouse) -> None:
    """SYN-11: a call tells every try with its times, tokens and cost, and why its Supply was chosen."""
    async with await caller(edge) as client, edge.admin as admin:
        made = await client.post(CHAT, json=HELLO)
        path = f"/v1/calls/{made.headers['pointsman-call']}"
        call = (await client.get(path)).json()
        assert (await admin.get(path)).json() == call
    assert (call["status"], call["supply"], call["model"]) == ("succeeded", "ark-main/chat", "chat-small")
    assert call["times"] == {"wall_ms": 500.0, "productive_ms": 400.0, "stall_ms": 0.0, "overhead_ms": 1.5}
    (attempt,) = call["attempts"]
    assert (attempt["state"], attempt["error"]["code"]) == ("failed", "rate_limited")
    assert (attempt["latency_ms"], attempt["time_to_first_token_ms"]) == (400.0, 90.0)
    assert (attempt["reserved_tokens"], attempt["usage"]["reasoning_tokens"]) == (120, 1)
    assert attempt["cost"] is None
    (round_,) = call["selections"]
    assert (round_["chosen"], round_["candidates"][0]["fate"]) == ("ark-main/chat", "chosen")


async def test_foreign_calls_do_not_exist(edge: EdgeHouse) -> None:
    """AUTH-1: another tenant's call is not found, in the words of one that never was."""
    async with await caller(edge, "owner") as owner, await caller(edge, "stranger") as stranger:
        call_id = (await owner.post(CHAT, json=HELLO)).headers["pointsman-call"]
        foreign = check(await stranger.get(f"/v1/calls/{call_id}"), 404, "not_found")
        never = check(await stranger.get("/v1/calls/none"), 404, "not_found")
    assert foreign["detail"].replace(call_id, "none") == never["detail"]


INVOKING = [CHAT, "/v1/embeddings", "/v1/images/generations", "/v1/audio/speech", "/v1/invoke", "/v1/ocr"]


@pytest.mark.parametrize("path", INVOKING)
async def test_calls_need_their_scope(edge: EdgeHouse, path: str) -> None:
    """AUTH-1: scope `invoke` alone opens synchronous calls; runs and operators have no part in it."""
    async with await edge.user("studio", "runs", "operate") as client:
        check(await client.post(path, json=HELLO), 403, "forbidden")
    assert edge.routing.asked == []


@pytest.mark.parametrize("stream, stuck", [(False, False), (True, False), (True, True)])
async def test_a_client_that_leaves_gives_its_call_up(edge: EdgeHouse, stream: bool, stuck: bool) -> None:
    """SYN-8: when the client leaves, routing's call is cancelled, streamed or not, and nothing is sent any more.

    `stuck`: it leaves while the very head of the answer waits to be sent.
    """
    _, key = await edge.key("studio", "invoke")
    body = json.dumps({**HELLO, "stream": stream}).encode()
    edge.routing.gate.clear()
    sent: list[Any] = []
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if messages:
            return messages.pop(0)
        await edge.routing.begun.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if stuck:
            await asyncio.Event().wait()
        sent.append(message)

    headers = [(b"authorization", f"Bearer {key}".encode()), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": CHAT, "query_string": b"", "headers": headers, "root_path": ""}
    async with asyncio.timeout(10) as limit:
        await edge.context.app(scope, receive, send)
        await edge.routing.gate.wait()
    assert not limit.expired()
    assert edge.routing.given_up == [edge.routing.asked[0].call_id]
    assert all(not message.get("body") or b"Good" in message["body"] for message in sent)
    assert not any(b"DONE" in message.get("body", b"") for message in sent)


async def test_materials_of_pictures_are_judged(edge: EdgeHouse) -> None:
    """AUTH-4: reference pictures of a generation are materials as everywhere."""
    body = {"model": "m", "prompt": "p", "reference_images": [{"url": "http://10.0.0.1/x"}]}
    async with await caller(edge) as client:
        problem = check(await client.post("/v1/images/generations", json=body), 422, "url_not_allowed")
    assert pointers(problem) == ["/reference_images/0/url"]


async def artifact_of(edge: EdgeHouse, content: bytes, media_type: str) -> str:
    """Let the next call give this file; its digest."""
    blob = await edge.blobs.put(content, media_type)
    edge.routing.artifacts = [artifact_pb2.Artifact(sha256=blob.sha256, media_type=media_type, size_bytes=len(content))]
    return blob.sha256


async def test_made_files_are_the_callers_to_read(edge: EdgeHouse) -> None:
    """AUTH-1: an artifact of a call is readable by its tenant as soon as the answer is, and by no other."""
    digest = await artifact_of(edge, b"wav", "audio/wav")
    async with await caller(edge) as client, await caller(edge, "other") as other:
        spoken = await client.post("/v1/audio/speech", json={"model": "narrator", "input": "Hello", "voice": "alloy"})
        assert (spoken.content, spoken.headers["content-type"]) == (b"wav", "audio/wav")
        assert (await client.get(f"/v1/artifacts/{digest}")).content == b"wav"
        check(await other.get(f"/v1/artifacts/{digest}"), 404, "not_found")
    (asked,) = edge.routing.asked
    assert (asked.kind, json.loads(asked.input)) == ("speech", {"voice": "alloy", "text": "Hello", "format": "mp3"})
