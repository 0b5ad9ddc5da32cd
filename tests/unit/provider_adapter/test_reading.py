"""Finding the evidence wherever a provider puts it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.provider_adapter.domain.reading import SAID_LIMIT, Shape, read

CODE = "OutputVideoSensitiveContentDetected"
ERROR = {"error": {"code": CODE, "message": "may contain sensitive information"}}


@pytest.mark.parametrize(
    "wrapped",
    [
        ERROR,
        [ERROR],
        {"code": "fail_to_fetch_task", "message": json.dumps(ERROR)},
        {"error": {"message": f"upstream said: {json.dumps(ERROR)} (500)", "code": "bad_response_status_code"}},
        {"error": {"code": 400, "message": "Provider returned error", "metadata": {"raw": json.dumps(ERROR)}}},
        {"error": {"code": "backend", "details": json.dumps(ERROR)}},
        {"code": "success", "data": {"status": "FAILURE", "fail_reason": "task failed", "data": ERROR}},
        {"Response": {"Error": {"Code": CODE, "Message": "x"}}},
        {"output": {"task_status": "FAILED", "code": CODE, "message": "x"}},
        json.dumps(ERROR),
        [[ERROR]],
        {"video": {"error": ERROR}},
    ],
    ids="plain list text words raw details twice response output whole lists video".split(),
)
def test_the_innermost_code_is_found_first(wrapped: Any) -> None:
    """ERR-1: a wrapper's own code never hides the one that it wraps."""
    reading = read(json.dumps(wrapped).encode())
    assert reading.codes[0].text == CODE


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"error": {"message": "m", "param": "messages[0].content"}}, "messages[0].content"),
        ({"error": {"message": "m", "param": None}}, ""),
        ({"detail": [{"loc": ["body", "images", 0], "msg": "m"}, {"loc": ["body", "seed"]}]}, "images.0"),
        ({"error": {"message": json.dumps({"error": {"param": "seed", "message": "m"}})}}, "seed"),
        ({"param": {"code": CODE}}, ""),
        ({"param": [[], {}]}, ""),
    ],
)
def test_the_field_that_is_named_is_read(body: Any, param: str) -> None:
    """ERR-1: by its name or by its path, wherever the error stands; and an object of that name hides no code."""
    reading = read(json.dumps(body).encode())
    assert reading.param == param
    assert isinstance(body.get("param"), dict) == (CODE in [clue.text for clue in reading.codes])


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        (b"", Shape.EMPTY),
        (b"  \r\n", Shape.EMPTY),
        (b'{"a": 1}', Shape.JSON),
        (b'{"a": ', Shape.CUT),
        (b"<html></html>", Shape.HTML),
        (b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", Shape.XML),
        (b"event: error\ndata: {}\n\n", Shape.EVENTS),
        (b"error code: 520", Shape.TEXT),
        (b"\xff\xfe\x00", Shape.BINARY),
        (b"[" * 100_000, Shape.CUT),
    ],
)
def test_the_shape_of_a_body(body: bytes, shape: Shape) -> None:
    """ERR-1a: what cannot be read has a shape that says so."""
    assert read(body).shape is shape


def test_lines_of_json_are_a_stream() -> None:
    """ERR-1: the line that tells of a failure is found; one object over several lines is no stream."""
    body = b'{"response": "He"}\n{"error": "server busy"}\n{"done": true}\n'
    reading = read(body)
    assert (reading.shape, reading.messages[0].text) == (Shape.EVENTS, "server busy")
    assert read(b'{"response":\n"He"').shape is Shape.CUT


@pytest.mark.parametrize(
    ("body", "state", "codes"),
    [
        ({"done": True}, "done", ()),
        ({"done": False}, "", ()),
        ({"video": {"respect_moderation": False}}, "", ("content_filtered",)),
        ({"video": {"respect_moderation": True}}, "", ()),
    ],
)
def test_flags_tell_by_one_of_their_values(body: Any, state: str, codes: tuple[str, ...]) -> None:
    """ERR-1: `done: true` is a state, `respect_moderation: false` a refusal; the other value is silence."""
    reading = read(json.dumps(body).encode())
    assert (reading.state, tuple(clue.text for clue in reading.codes)) == (state, codes)


def test_a_flood_of_words_is_cut() -> None:
    """ERR-1: a reply of any size is judged in bounded time: each text once, and no more than so many characters."""
    flood = [{"message": letter * 1900, "detail": letter * 1900} for letter in "abcdefghij"]
    texts = [clue.text for clue in read(json.dumps(flood).encode()).messages]
    assert len(set(texts)) == len(texts)
    assert 0 < sum(map(len, texts)) <= SAID_LIMIT


def test_what_users_and_models_wrote_is_no_evidence() -> None:
    """ERR-1: a prompt about sensitive content, echoed in an answer, proves nothing."""
    body = {"prompt": "nsfw", "input": {"text": "rate limit"}, "choices": [{"message": {"content": "moderation"}}]}
    reading = read(json.dumps(body).encode())
    assert (reading.codes, reading.messages) == ((), ())


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["error", "code", "message", "detail", "data", "status", "x"]), inner)
        ),
        max_leaves=30,
    )
)
def test_reading_never_fails(document: Any) -> None:
    """ERR-1: any JSON is read, and every clue says where it stands."""
    reading = read(json.dumps(document).encode())
    assert all(clue.path.startswith("body") for clue in (*reading.codes, *reading.messages))


@given(st.binary(max_size=300))
def test_reading_bytes_never_fails(body: bytes) -> None:
    """ERR-1: any bytes are read; what no application wrote has no codes."""
    reading = read(body)
    assert reading.shape in (Shape.JSON, Shape.EVENTS, Shape.XML) or reading.codes == ()
