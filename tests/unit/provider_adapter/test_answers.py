"""Answers as results of jobs: words as files, what is short beside them, and nothing that a store could not keep."""

import base64
import json
from typing import Any

import pytest

from services.provider_adapter.domain.answers import MOST_CHARACTERS, made_of
from services.provider_adapter.domain.calls import Answered, Report, Usage
from services.provider_adapter.domain.outcomes import Made

JSON_ASKED = {"response_format": {"type": "json_schema"}}


def made(kind: str, body: Any, given: Any = None, report: Report = Report()) -> Made:  # noqa: B008 a frozen value
    """The result of that answer."""
    return made_of(kind, Answered(json.dumps(body).encode(), report), given or {})


def chat(*contents: Any, given: Any = None) -> Made:
    """Of a completion with these choices."""
    return made("chat", {"choices": [{"message": {"role": "assistant", "content": each}} for each in contents]}, given)


def files(result: Made) -> list[tuple[str, bytes]]:
    """Types and bytes."""
    return [(media.media_type, media.data) for media in result.media]


def test_each_choice_is_a_file_and_the_first_is_told() -> None:
    """RUN-7: several answers are several files; a content of parts says what its texts say."""
    result = chat("one", [{"type": "text", "text": "two"}, {"type": "text", "text": " too"}])
    assert files(result) == [("text/plain", b"one"), ("text/plain", b"two too")]
    assert result.output == {"text": "one"}


def test_an_answer_without_words_is_kept_whole() -> None:
    """RUN-7: a tool call is a file as well, and no text is made up for it."""
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    result = made("chat", {"choices": [{"message": call}]}, report=Report(finish_reason="tool_calls"))
    [(media_type, data)] = files(result)
    assert (media_type, json.loads(data)) == ("application/json", call)
    assert result.output == {"finish_reason": "tool_calls"}


@pytest.mark.parametrize(
    "text, told",
    [
        ('{"shots": [{"id": "S01"}]}', {"shots": [{"id": "S01"}]}),
        ('["a\\u0000b"]', ["a\ufffdb"]),
        ("no json", None),
        ("[" * 100_000, None),
        ("[" * 30 + "]" * 30, None),
    ],
)
def test_json_that_was_asked_for_is_told_as_such(text: str, told: Any) -> None:
    """RUN-4: an expression leads into it; what is none, or cannot be kept, stands in the file alone."""
    result = chat(text, given=JSON_ASKED)
    assert result.output.get("json") == told
    assert files(result) == [("text/plain", text.encode())]
    assert "json" not in chat(text).output


def test_what_is_long_or_odd_is_told_so_that_it_can_be_kept() -> None:
    """EDG-3: a text beyond the bound is in its file alone; a NUL is in no record, and the bytes stay as they are."""
    assert chat("x" * (MOST_CHARACTERS + 1)).output == {}
    odd = chat("a\0b")
    assert odd.output == {"text": "a\ufffdb"}
    assert files(odd) == [("text/plain", b"a\0b")]


@pytest.mark.parametrize("vector", [[0.5, 1.0, 0.0], base64.b64encode(bytes(12)).decode()], ids=["numbers", "base64"])
def test_vectors_are_a_file_and_their_figures_are_told(vector: Any) -> None:
    """SYN-11: vectors never stand in the history of a Run."""
    body = {"data": [{"index": 0, "embedding": vector}, {"index": 1, "embedding": vector}]}
    result = made("embedding", body, report=Report(Usage(input_tokens=5)))
    assert result.output == {"count": 2, "dimensions": 3}
    assert [json.loads(data) for _, data in files(result)] == [body]
    assert result.usage == {"input_tokens": 5}


def test_a_page_that_was_read_gives_its_words_and_its_blocks() -> None:
    """SYN-11: the text first, then the whole reading; a page without words is no failure."""
    body = {"text": "SALE", "blocks": [{"text": "SALE", "box": [0, 0, 9, 9]}]}
    result = made("ocr", body)
    assert [media_type for media_type, _ in files(result)] == ["text/plain", "application/json"]
    assert result.output == {"text": "SALE"}
    empty = made("ocr", {"text": "", "blocks": []})
    assert [media_type for media_type, _ in files(empty)] == ["application/json"]
    assert empty.output == {"text": ""}
