"""Bodies of synchronous calls, and OpenAI's answers, as values."""

import base64
import json
from array import array
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from services.edge.domain.calls import Fields, Receipt, Tokens, place_of
from services.edge.domain.openai_answers import ChunkWriter, completion, embeddings, images, usage_of
from services.edge.domain.openai_requests import SPEECH, TOP, read_chat, read_embedding, read_image, read_invoke

DOOR = frozenset({"model", "stream", "stream_options", "options"})
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
NAMES = ("model", "messages", "stream", "stream_options", "n", "options", "temperature", "user")
ANYTHING = st.dictionaries(st.sampled_from(NAMES) | WORDS, JSON)
BODIES = ANYTHING | ANYTHING.map(lambda body: {name: body[name] for name in body if name not in DOOR} | {"model": "m"})
RECEIPT = Receipt("C1", "chat", "a/b", 1, None, False, Tokens())


def fields_of(body: Any, ascii_only: bool = True) -> Fields:
    """The top level of a body, as the door reads it."""
    fields: Fields = msgspec.json.decode(json.dumps(body, ensure_ascii=ascii_only).encode(), type=Fields)
    return fields


def outcome(read: Callable[[], Any]) -> Any:
    """What it reads, or the Fault that it refuses with."""
    try:
        return read()
    except Fault as fault:
        return fault


def refused_by_name(found: Any) -> bool:
    """Whether it is a refusal that tells what is wrong and where."""
    if not isinstance(found, Fault):
        return False
    return found.code == "malformed_request" or (found.code == "validation_failed" and bool(found.errors))


@given(body=BODIES, ascii_only=st.booleans())
@example(body={"model": "m", "messages": ["\x00"]}, ascii_only=True)
@example(body={"model": "m", "\x00": 1}, ascii_only=True)
@example(body={"model": "m", "n": 2}, ascii_only=False)
@example(body={"model": "m", "stream": None, "options": None}, ascii_only=False)
def test_a_body_is_refused_or_goes_on_as_it_is(body: dict[str, Any], ascii_only: bool) -> None:
    """EDG-3: whatever comes is a named refusal, or the same JSON without the door's fields; no NUL gets through."""
    chat = outcome(lambda: read_chat(fields_of(body, ascii_only), {}))
    if isinstance(chat, Fault):
        assert refused_by_name(chat)
        return
    assert json.loads(chat.order.input) == {name: value for name, value in body.items() if name not in DOOR}
    assert chat.order.model == body["model"]
    assert "\x00" not in json.dumps(json.loads(chat.order.input), ensure_ascii=False)


@given(BODIES)
def test_an_invoke_is_refused_or_goes_on_as_it_is(given_input: dict[str, Any]) -> None:
    """SYN-1: the same of /v1/invoke, where the input has a field of its own and every name is the input's."""
    order = outcome(lambda: read_invoke(fields_of({"model": "m", "input": given_input}), {}))
    assert refused_by_name(order) or (json.loads(order.input) == given_input and given_input.get("stream") is not True)


@pytest.mark.parametrize("read", [read_embedding, read_image])
@given(body=st.dictionaries(st.sampled_from(["model", "prompt", "input", "options", "user", "size"]), JSON))
def test_no_body_breaks_the_door(read: Any, body: dict[str, Any]) -> None:
    """EDG-3: a body of any shape is read or refused, and never a bug."""
    found = outcome(lambda: read(fields_of(body), {"pointsman-cache": "no"}))
    assert refused_by_name(found) or isinstance(found, tuple)


@pytest.mark.parametrize(
    "pointer, renamed, place",
    [
        ("/input/text", SPEECH, "/input"),
        ("/input/voice", SPEECH, "/voice"),
        ("/input/messages/0/role", TOP, "/messages/0/role"),
        ("/input/messages/0", None, "/input/messages/0"),
        ("/options/timeout", None, "/options/timeout_s"),
        ("/options/timeout", TOP, "/options/timeout_s"),
        ("/model", TOP, "/model"),
        ("moss/chat", TOP, "moss/chat"),
    ],
)
def test_places_in_a_body(pointer: str, renamed: Any, place: str) -> None:
    """EDG-1: a pointer into the input points into the body that the caller sent."""
    assert place_of(pointer, renamed) == place


@given(st.lists(st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=4), max_size=4))
def test_vectors_in_both_spellings(vectors: list[list[float]]) -> None:
    """OAI-1: base64 of 32-bit floats, lowest byte first, is the same vector as its numbers."""
    output = json.dumps({"data": [{"index": i, "embedding": vector} for i, vector in enumerate(vectors)]}).encode()
    plain = embeddings(output, "m", "float", Tokens(input=3))
    packed = embeddings(output, "m", "base64", Tokens(input=3))
    assert (plain.usage.prompt_tokens, plain.usage.total_tokens) == (3, 3)
    for one, other in zip(plain.data, packed.data, strict=True):
        floats = array("f")
        floats.frombytes(base64.b64decode(str(other.embedding)))
        assert list(floats) == list(one.embedding)


@given(st.lists(st.tuples(WORDS, st.booleans()), max_size=5), st.booleans())
def test_a_stream_says_what_its_pieces_say(pieces: list[tuple[str, bool]], wanted: bool) -> None:
    """OAI-1: each piece is one frame of one line whatever its text; figures come at the end, if they were asked for."""
    writer = ChunkWriter("C1", "m", 7, wanted)
    frames = []
    for text, with_usage in pieces:
        chunk: dict[str, Any] = {"id": "x", "model": "up", "choices": [{"index": 0, "delta": {"content": text}}]}
        if with_usage:
            chunk["usage"] = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
        frames.append(writer.frame(json.dumps(chunk, indent=2).encode()))
    assert writer.frame(b'{"choices": [], "usage": null}') == b""
    told = [json.loads(frame.removeprefix(b"data: ")) for frame in frames]
    assert all(frame.count(b"\n") == 2 and frame.endswith(b"\n\n") for frame in frames)
    assert [chunk["choices"][0]["delta"]["content"] for chunk in told] == [text for text, _ in pieces]
    assert all((chunk["model"], chunk["created"], "usage" in chunk) == ("m", 7, wanted) for chunk in told)
    end = writer.end(RECEIPT)
    assert end.endswith(b"data: [DONE]\n\n")
    assert (b'"usage"' in end) == wanted
    if wanted and any(with_usage for _, with_usage in pieces):
        assert b'"total_tokens":3' in end


@pytest.mark.parametrize(
    "said, tokens, expected",
    [
        (None, Tokens(), {}),
        (b"null", Tokens(cached_input=1), {}),
        (None, Tokens(input=2, output=3), {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}),
        (b'{"prompt_tokens":9}', Tokens(input=2), {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 2}),
        (b'{"prompt_tokens":9,"prompt_tokens_details":null}', Tokens(cached_input=1),
         {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 1}}),
    ],
)  # fmt: skip
def test_usage_is_never_invented(said: bytes | None, tokens: Tokens, expected: dict[str, Any]) -> None:
    """OAI-1: the provider's words stand, ours fill what is absent, and what nobody said is absent."""
    assert usage_of(None if said is None else msgspec.Raw(said), tokens) == expected


def test_a_completion_tells_no_provider() -> None:
    """OAI-1: of the upstream answer go on the choices, the usage and OpenAI's own fields."""
    output = b'{"id":"up","model":"up","choices":[],"x_provider":{"cost":1},"service_tier":"default"}'
    assert json.loads(completion(output, "m", RECEIPT, 7)) == {
        "id": "chatcmpl-C1", "object": "chat.completion", "created": 7, "model": "m", "choices": [],
        "service_tier": "default",
    }  # fmt: skip


def test_pictures_without_words() -> None:
    """OAI-1: pictures are told whether or not the provider said anything beside them."""
    for output in (b"", b"{}", b'{"data":[{"artifact":"x"}]}', b'{"data":[]}'):
        found = images(output, ["u1", "u2"], [], Tokens(), 7)
        assert [picture.url for picture in found.data] == ["u1", "u2"]
