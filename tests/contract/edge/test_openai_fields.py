"""Fields of OpenAI's bodies: each is honoured, means what is done anyway, or is refused by name."""

import json
from typing import Any

import httpx2
import pytest

from libs.faults.fault import Fault
from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_calls import artifact_of, caller
from tests.contract.edge.test_problems import check, pointers


async def test_words_that_ask_for_what_is_done_anyway(edge: EdgeHouse) -> None:
    """OAI-1: format and speed of speech go on, mp3 where nothing is said; `auto` is no choice and goes nowhere."""
    await artifact_of(edge, b"fLaC", "audio/flac")
    async with await caller(edge) as client:
        more = {"input": "Hello", "response_format": "flac", "speed": 1.5, "stream_format": "audio"}
        assert (await client.post("/v1/audio/speech", json={"model": "narrator", **more})).status_code == 200
        automatic = dict.fromkeys(("quality", "background", "moderation", "size"), "auto")
        picture = await client.post("/v1/images/generations", json={"model": "m", "prompt": "x", **automatic})
        assert picture.status_code == 200
        none = {"model": "narrator", "input": "x", "response_format": None}
        assert (await client.post("/v1/audio/speech", json=none)).status_code == 200
    spoken, drawn, plain = (json.loads(asked.input) for asked in edge.routing.asked)
    assert spoken == {"text": "Hello", "format": "flac", "speed": 1.5}
    assert drawn == {"prompt": "x"}
    assert plain == {"text": "x", "format": "mp3"}


async def test_a_format_that_routing_refuses(edge: EdgeHouse) -> None:
    """OAI-1, EDG-1: what is wrong with a field of the kind is told under the name that this route has for it."""
    edge.routing.fault = Fault.invalid(("/input/format", "needs format flac, admits mp3, wav"))
    async with await caller(edge) as client:
        answer = await client.post("/v1/audio/speech", json={"model": "m", "input": "x", "response_format": "flac"})
    told = check(answer, 422, "validation_failed")
    assert (pointers(told), told["error"]["param"]) == (["/response_format"], "response_format")
    assert "mp3, wav" in told["detail"]
    edge.routing.fault = Fault.invalid(("/input", "asks for what model 'm' has not got at a/tts: needs voice zoe"))
    async with await caller(edge) as client:
        answer = await client.post("/v1/audio/speech", json={"model": "m", "input": "x", "voice": "zoe"})
    told = check(answer, 422, "validation_failed")
    assert (pointers(told), told["error"]["param"]) == ([""], None), "the field `input` is not meant"


@pytest.mark.parametrize(
    "path, more, named",
    [
        ("/v1/images/generations", {"quality": "hd", "user": "u"}, "/quality"),
        ("/v1/images/generations", {"stream": True}, "/stream"),
        ("/v1/images/generations", {"response_format": "png"}, "/response_format"),
        ("/v1/images/generations", {"background": "transparent"}, "/background"),
        ("/v1/images/generations", {"output_format": "png"}, "/output_format"),
        ("/v1/audio/speech", {"response_format": 3}, "/response_format"),
        ("/v1/audio/speech", {"format": "mp3"}, "/format"),
        ("/v1/audio/speech", {"instructions": "softly"}, "/instructions"),
        ("/v1/audio/speech", {"stream_format": "sse"}, "/stream_format"),
        ("/v1/audio/speech", {"text": "x"}, "/text"),
        ("/v1/embeddings", {"encoding_format": "int8"}, "/encoding_format"),
    ],
)
async def test_what_openai_has_and_we_do_not(edge: EdgeHouse, path: str, more: dict[str, Any], named: str) -> None:
    """OAI-1: a field that would be ignored is refused with the reason instead."""
    async with await caller(edge) as client:
        answer: httpx2.Response = await client.post(path, json={"model": "m", "input": "x", **more})
    assert pointers(check(answer, 422, "validation_failed")) == [named]
