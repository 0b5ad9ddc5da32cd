"""Every answer that is no success is a problem."""

import base64
import json
from itertools import product
from typing import Any

import httpx2
import pytest

from libs.faults.fault import Fault
from libs.faults.registry import CODES, Category, type_uri
from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_runs import ORDER

MEMBERS = {"type", "title", "status", "detail", "code", "request_id", "retryable", "category", "scope"}
IMAGE = {"base64": base64.b64encode(b"x").decode(), "media_type": "image/png"}


def check(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The body, once it has proved to be a whole problem."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body.keys() >= MEMBERS
    assert (body["status"], body["code"], body["type"]) == (status, code, type_uri(code))
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["title"] == CODES[code].title
    return body


def pointers(body: dict[str, Any]) -> list[str]:
    """Which fields were named."""
    return [error["pointer"] for error in body["errors"]]


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/completions", "/v1/audio/transcriptions"])
async def test_paths_of_openai_that_nobody_serves(edge: EdgeHouse, path: str) -> None:
    """OAI-1: the official client finds its own envelope where it asks for what is not served."""
    async with edge.client() as client:
        told = check(await client.post(path, json={}), 404, "not_found")
    assert told["error"]["message"] == told["detail"]


@pytest.mark.parametrize("path", ["/v2/runs", "/v1/runs/", "/v1/runs/r/none", "/v1/run%00s", "/v1/%ff%fe", "/v1//runs"])
async def test_unknown_paths(edge: EdgeHouse, path: str) -> None:
    """EDG-3: a path that nobody serves is a 404 problem, whatever bytes are in it."""
    async with edge.client() as client:
        check(await client.get(path), 404, "not_found")


@pytest.mark.parametrize(
    "method, path, allow",
    [
        ("PUT", "/v1/runs", "GET, HEAD, OPTIONS, POST"),
        ("DELETE", "/v1/runs/r1", "GET, HEAD, OPTIONS"),
        ("POST", "/v1/runs/r1/stream", "GET, OPTIONS"),
        ("HEAD", "/v1/runs/r1/stream", "GET, OPTIONS"),
        ("TRACE", "/healthz", "GET, HEAD, OPTIONS"),
        ("BREW", "/v1/operator/supplies/a%2Fb:disable", "OPTIONS, POST"),
    ],
)
async def test_unknown_methods(edge: EdgeHouse, method: str, path: str, allow: str) -> None:
    """EDG-3: a method that a path does not know is 405 with Allow."""
    async with edge.client() as client:
        answer = await client.request(method, path)
    assert answer.headers["allow"] == allow
    if method == "HEAD":
        assert (answer.status_code, answer.content) == (405, b"")
    else:
        check(answer, 405, "method_not_allowed")


async def test_options_and_head(edge: EdgeHouse) -> None:
    """EDG-3: OPTIONS tells the methods; HEAD answers what GET would, without a body."""
    async with await edge.user() as client:
        options = await client.options("/v1/runs")
        assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
        edge.runs.add("r1")
        got, head = await client.get("/v1/runs/r1"), await client.head("/v1/runs/r1")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == got.headers["content-length"]
        missing = await client.head("/v1/runs/none")
        assert (missing.status_code, missing.content) == (404, b"")


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{", b'{"a": }', b"\xff\xfe", b'{"model": "\xc3"}', b"NaN", b'{"a":1}x', b"[" * 100_000,
        b'{"model": "\\ud800x"}', b"[" * 80 + b"]" * 80,
    ],
)  # fmt: skip
async def test_bodies_that_cannot_be_read(edge: EdgeHouse, raw: bytes) -> None:
    """EDG-3: what is no JSON, no UTF-8 or nested beyond reason is 400, never a stack trace."""
    async with await edge.user() as client:
        answer = await client.post("/v1/runs", content=raw, headers={"content-type": "application/json"})
    check(answer, 400, "malformed_request")


BEYOND_REASON = [
    b'{"model": "m", "options": {"timeout_s": 1e999}, "input": {}}',
    b'{"model": 1e999, "input": {}}',
    b'{"model": "m", "input": {"seed": 1e999, "image": {"url": "https://pictures.example/a.png"}}}',
    b'{"model": ' + b"[" * 80 + b"]" * 80 + b', "input": {}}',
    b'{"model": ' + b"[" * 996 + b"]" * 996 + b', "input": {}}',
]


@pytest.mark.parametrize("path", ["/v1/invoke", "/v1/audio/speech", "/v1/runs"])
@pytest.mark.parametrize("raw", BEYOND_REASON)
async def test_what_is_json_and_beyond_reason(edge: EdgeHouse, raw: bytes, path: str) -> None:
    """EDG-3: numbers that no double holds and nesting without end are 400, also in fields that only the door reads."""
    async with await edge.user("studio", "runs", "invoke") as client:
        answer = await client.post(path, content=raw, headers={"content-type": "application/json"})
    check(answer, 400, "malformed_request")


HALVES = [
    (b'{"messages": [{"role": "user", "content": "\\ud83d"}]}', "/messages/0/content"),
    (b'{"messages": [{"role": "user", "content": "\\ude00 and more"}]}', "/messages/0/content"),
    (b'{"input": ["a", "b\\ud83d\\u0041"]}', "/input/1"),
    (b'{"a\\ud83d": 1}', "/a\\ud83d"),
]


async def test_half_a_character_is_named_where_it_stands(edge: EdgeHouse) -> None:
    """EDG-1 EDG-3: what a client cut in the middle of an emoji is refused with its place and the reason, whether a
    route reads its body or passes it on."""
    async with await edge.user("studio", "runs", "invoke") as client:
        for path, (raw, pointer) in product(("/v1/chat/completions", "/v1/invoke", "/v1/runs"), HALVES):
            answer = await client.post(path, content=raw, headers={"content-type": "application/json"})
            told = check(answer, 400, "malformed_request")
            assert [error["pointer"] for error in told["errors"]] == [pointer]
            assert "holds half of a surrogate pair, \\ud" in told["detail"]


async def test_a_refusal_tells_the_providers_own_words(edge: EdgeHouse) -> None:
    """OAI-1 ERR-4: what its provider said and of which field, redacted, in problem and envelope alike."""
    hello = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
    edge.routing.fault = Fault.of(
        "invalid_request",
        provider_message="Unsupported value: 'temperature' with key sk-abcdefghijklmnopqrstuvwx",
        metadata={"param": "temperature", "evidence": "status 400"},
    )
    async with await edge.user("studio", "invoke") as client:
        told = check(await client.post("/v1/chat/completions", json=hello), 422, "invalid_request")
    words = told["detail"]
    assert words.startswith("The provider refused a parameter; the provider said: Unsupported value: 'temperature'")
    assert "sk-abcdefghij" not in words
    assert (told["param"], told["error"]["param"], told["error"]["message"]) == ("temperature", "temperature", words)


async def test_a_body_cut_short_says_so(edge: EdgeHouse) -> None:
    """EDG-3: what ends within a string is told as that, half a character at its end or not."""
    async with await edge.user() as client:
        raw = b'{"model": "a\\ud83d'
        answer = await client.post("/v1/runs", content=raw, headers={"content-type": "application/json"})
    assert check(answer, 400, "malformed_request")["detail"] == "the body is not JSON: it ends before it is whole"


async def test_a_broken_body_is_placed(edge: EdgeHouse) -> None:
    """EDG-1: the detail says where the JSON breaks."""
    async with await edge.user() as client:
        raw = b'{\n  "model": clip\n}'
        answer = await client.post("/v1/runs", content=raw, headers={"content-type": "application/json"})
    assert "line 2, column 12" in check(answer, 400, "malformed_request")["detail"]


@pytest.mark.parametrize(
    "body, named",
    [
        ([], [""]),
        ("text", [""]),
        ({}, ["/input", "/model"]),
        ({"model": 5, "input": []}, ["/input", "/model"]),
        (ORDER | {"modle": "x"}, ["/modle"]),
        (ORDER | {"options": {"priority": "urgent", "speed": 1}}, ["/options/priority", "/options/speed"]),
        (ORDER | {"options": {"deadline_s": -1, "timeout_s": "9"}}, ["/options/deadline_s", "/options/timeout_s"]),
        (ORDER | {"options": {"deadline_s": True}}, ["/options/deadline_s"]),
        (ORDER | {"options": {"budget": {"cost": "1"}}}, ["/options/budget"]),
        (ORDER | {"labels": {"a": 1, "b=c": "d"}}, ["/labels/a", "/labels/b=c"]),
        (ORDER | {"callback_url": "ftp://example.com"}, ["/callback_url"]),
        ({"production": {"production": "x"}, "model": "clip"}, ["/model"]),
        ({"model": "clip", "input": {"prompt": "a\x00b"}}, ["/input/prompt"]),
        ({"model": "clip", "input": {"a/b~": ["\x00"]}}, ["/input/a~1b~0/0"]),
        ({"model": "clip", "input": {"seed": 2**60 + 1}}, ["/input/seed"]),
        ({"model": "clip", "input": {"reference_images": "x"}}, ["/input/reference_images"]),
        ({"model": "clip", "input": {"reference_images": [{}]}}, ["/input/reference_images"]),
        ({"model": "clip", "input": {"first_frame": "https://x"}}, ["/input/first_frame"]),
        ({"model": "clip", "input": {"first_frame": {"url": "file:///etc/passwd"}}}, ["/input/first_frame/url"]),
        ({"model": "clip", "input": {"first_frame": {"url": "https://a", "artifact": "b"}}}, ["/input/first_frame"]),
        ({"model": "clip", "input": {"first_frame": {"artifact": "zz"}}}, ["/input/first_frame/artifact"]),
        ({"model": "clip", "input": {"first_frame": {"artifact": "ab" * 32}}}, ["/input/first_frame/artifact"]),
        ({"model": "clip", "input": {"first_frame": IMAGE | {"media_type": "png"}}}, ["/input/first_frame/media_type"]),
        ({"model": "clip", "input": {"first_frame": IMAGE | {"base64": "*"}}}, ["/input/first_frame/base64"]),
        ({"model": "clip", "input": {"first_frame": IMAGE | {"name": "x"}}}, ["/input/first_frame/name"]),
    ],
)
async def test_fields_that_cannot_be(edge: EdgeHouse, body: Any, named: list[str]) -> None:
    """EDG-1: unknown fields, wrong types, NUL characters and bad materials are 422, each named by JSON pointer."""
    async with await edge.user() as client:
        answer = await client.post("/v1/runs", json=body)
    assert sorted(pointers(check(answer, 422, "validation_failed"))) == named
    assert edge.runs.created == []


@pytest.mark.parametrize("url", ["http://127.0.0.1/x", "http://localhost:9101", "http://[::1]/", "http://10.1.2.3/"])
async def test_private_addresses_are_refused(edge: EdgeHouse, url: str) -> None:
    """EDG-2: a material that leads into a private network is url_not_allowed by default."""
    async with await edge.user() as client:
        body = {"model": "clip", "input": {"first_frame": {"url": url}}}
        assert pointers(check(await client.post("/v1/runs", json=body), 422, "url_not_allowed")) == [
            "/input/first_frame/url"
        ]


async def test_media_types_and_sizes(edge: EdgeHouse) -> None:
    """EDG-3: a body of another type is 415, one beyond the limit 413, announced or streamed."""
    async with await edge.user() as client:
        form = await client.post("/v1/runs", data={"model": "clip"})
        check(form, 415, "unsupported_media_type")
        latin = {"content-type": "application/json; charset=latin-1"}
        check(await client.post("/v1/runs", content=b"{}", headers=latin), 415, "unsupported_media_type")
        announced = {"content-type": "application/json", "content-length": str(10**9)}
        check(await client.post("/v1/runs", content=b"{}", headers=announced), 413, "payload_too_large")

        async def pieces() -> Any:
            for _ in range(70):
                yield b" " * 1024

        streamed = await client.post(
            "/v1/runs/r1/cancel", content=pieces(), headers={"content-type": "application/json"}
        )
        check(streamed, 413, "payload_too_large")
    way_out = "upload a file of that size first (POST /v1/artifacts) and name it by its sha256"
    async with edge.admin as client:
        for path, most in (("/v1/operator/reviews/r/decide", 256), ("/v1/operator/budgets", 64)):
            large = {"content-type": "application/json", "content-length": str(most * 1024 + 1)}
            problem = check(await client.post(path, content=b"{}", headers=large), 413, "payload_too_large")
            assert problem["detail"].endswith(way_out)


@pytest.mark.parametrize("key", ["", "a b", "é".encode(), "x" * 256])
async def test_idempotency_keys_that_cannot_be_kept(edge: EdgeHouse, key: Any) -> None:
    """EDG-3: an Idempotency-Key that is empty, too long or not visible ASCII is 400."""
    async with await edge.user() as client:
        answer = await client.post("/v1/runs", json=ORDER, headers={"idempotency-key": key})
    check(answer, 400, "malformed_request")


async def test_retry_after_is_told(edge: EdgeHouse) -> None:
    """EDG-3: Retry-After, in whole seconds, where a fault is retryable and the time is known."""
    async with await edge.user() as client:
        edge.runs.refusal = Fault.of("capacity_exhausted", "5 of 5 slots", retry_after_ms=1200)
        answer = await client.post("/v1/runs", json=ORDER)
        body = check(answer, 429, "capacity_exhausted")
        assert (answer.headers["retry-after"], body["retryable"], body["category"]) == ("2", True, "capacity")
        edge.runs.refusal = Fault.of("content_rejected", "no", retry_after_ms=1000)
        assert "retry-after" not in (await client.post("/v1/runs", json=ORDER)).headers


async def test_codes_of_a_later_release_survive(edge: EdgeHouse) -> None:
    """ERR-3: a code that this release does not know passes with the status of its category."""
    async with await edge.user() as client:
        edge.runs.refusal = Fault("weather_too_bad", "rain", category=Category.SUPPLY, retryable=True)
        answer = await client.post("/v1/runs", json=ORDER)
    assert (answer.status_code, answer.json()["code"]) == (503, "weather_too_bad")


async def test_bugs_stay_inside(edge: EdgeHouse) -> None:
    """EDG-3: an exception is a 500 problem with a reference; its text stays in the log."""
    edge.health.fault = RuntimeError("the secret inside")
    async with edge.admin as client:
        answer = await client.get("/v1/operator/health")
    body = check(answer, 500, "internal")
    assert "secret" not in answer.text
    assert body["detail"].startswith("reference ")


async def test_request_ids_are_our_own(edge: EdgeHouse) -> None:
    """EDG-1: every answer has a ULID of ours in X-Request-Id, never the caller's; peers are told the same one."""
    async with await edge.user() as client:
        first = await client.post("/v1/runs", json=ORDER, headers={"x-request-id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
        second = await client.get("/healthz")
    ids = [first.headers["x-request-id"], second.headers["x-request-id"]]
    assert len(set(ids)) == 2
    assert all(len(found) == 26 for found in ids)
    assert "01ARZ3NDEKTSV4RRFFQ69G5FAV" not in ids
    identity = edge.runs.identities[-1]
    assert (identity.request_id, identity.tenant, identity.caller) == (ids[0], "studio", "edge")
    assert identity.authorization is None


async def test_secrets_stay_out_of_problems(edge: EdgeHouse) -> None:
    """ERR-4: what looks like a key is hidden in a detail."""
    async with await edge.user() as client:
        edge.runs.refusal = Fault.of("not_found", "key sk-abcdefghijklmnop is not known")
        answer = await client.post("/v1/runs", json=ORDER)
    assert "abcdefghijklmnop" not in json.dumps(answer.json())


async def test_every_code_has_a_page(edge: EdgeHouse) -> None:
    """ERR-3: the Link of a problem leads to the page of its code, and every code has one."""
    async with edge.client() as client:
        for code in CODES:
            page = await client.get(f"/errors/{code}")
            assert page.status_code == 200
            assert page.text.startswith(f"# {code}\n")
        missing = await client.get("/errors/none")
        check(missing, 404, "not_found")
        assert missing.headers["link"] == '</errors/not_found>; rel="help"'
        assert "validation_failed" in (await client.get("/errors")).text
