"""Chat, embeddings, pictures, speech and pages against the studio, through the real service."""

import json
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.rpc.faulting import faults_from_rpc
from pointsman.provider_adapter.v1 import provider_pb2
from pointsman.provider_adapter.v1 import provider_service_pb2 as pb

MODELS = {
    "chat": ("lumen", "gpt-4o-mini", {}),
    "embedding": ("lumen", "text-embedding-3-small", {}),
    "image": ("dahlia", "gpt-image-1", {}),
    "speech": ("dahlia", "gpt-4o-mini-tts", {}),
    "ocr": ("opal", "own-font", {"adapter": "local-ocr"}),
}
SAY = [{"role": "user", "content": "Say something about the harbour."}]


def asked(rig: Any, kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """The channel and the call of one question to the studio."""
    account, model, changes = MODELS[kind]
    call = provider_pb2.SynchronousCall(
        attempt_id="a", client_token="t", kind=kind, upstream_model=model, input=json.dumps(given).encode()
    )
    return {"channel": rig.channel(account, **{"adapter": "openai"} | changes), "call": call}


async def told(rig: Any, kind: str, **given: Any) -> tuple[dict[str, Any], pb.InvokeResponse]:
    """The output and the whole answer of one call."""
    async with faults_from_rpc():
        answer = await rig.stub.Invoke(pb.InvokeRequest(**asked(rig, kind, given)), timeout=60)
    return json.loads(answer.output), answer


async def streamed(rig: Any, **given: Any) -> tuple[str, Any]:
    """All that a stream said, and its report or the fault in which it ended."""
    said = ""
    try:
        async with faults_from_rpc():
            async for piece in rig.stub.InvokeStream(pb.InvokeStreamRequest(**asked(rig, "chat", given)), timeout=60):
                if piece.WhichOneof("piece") == "report":
                    return said, piece.report
                for choice in json.loads(piece.chunk)["choices"]:
                    said += choice["delta"].get("content") or ""
    except Fault as fault:
        return said, fault
    raise AssertionError("the stream ended without a word")


async def test_chat_at_once_and_streamed(rig) -> None:
    """SYN-1 SYN-8: the same words both ways, and the same usage."""
    output, answer = await told(rig, "chat", messages=SAY, seed=7)
    words, report = await streamed(rig, messages=SAY, seed=7)
    assert output["choices"][0]["message"]["content"] == words != ""
    assert answer.report.usage == report.usage
    assert report.usage.output_tokens > 0
    assert answer.report.finish_reason == report.finish_reason == "stop"
    assert len(await rig.submissions("lumen")) == 2


@pytest.mark.parametrize(
    ("step", "code"),
    [({"cut_after": 3}, "stream_interrupted"), ({"error_after": 3}, "provider_error")],
    ids=["cut", "error"],
)
async def test_a_stream_that_does_not_end(rig, step: dict[str, Any], code: str) -> None:
    """SYN-8: what was said is given; the end is an interruption, or the studio's own error; it was asked once."""
    await rig.script(step, account="lumen")
    words, fault = await streamed(rig, messages=SAY)
    assert words
    assert (fault.code, fault.metadata["possibly_charged"]) == (code, "true")
    assert await rig.posts("lumen") == 1


async def test_a_stream_that_is_filtered(rig) -> None:
    """SYN-2 SYN-8: after some words it is how they end; a refusal in place of a first word is one of the request."""
    await rig.script({"content_filter_after": 3}, {"refusal": True}, account="lumen")
    words, report = await streamed(rig, messages=SAY)
    assert (bool(words), report.finish_reason) == (True, "content_filter")
    words, fault = await streamed(rig, messages=SAY)
    assert (words, fault.code) == ("", "content_rejected")


async def test_vectors(rig) -> None:
    """SYN-11: one for each text, in order, as long as asked."""
    output, answer = await told(rig, "embedding", input=["a storm", "a calm", "a storm"], dimensions=8)
    vectors = [item["embedding"] for item in sorted(output["data"], key=lambda item: item["index"])]
    assert [len(vector) for vector in vectors] == [8, 8, 8]
    assert vectors[0] == pytest.approx(vectors[2])
    assert vectors[0] != pytest.approx(vectors[1])
    assert answer.report.usage.input_tokens > 0


async def test_a_picture_is_drawn_and_read(rig) -> None:
    """SYN-11: what the studio writes into a picture, its reader finds there, with a box in the picture."""
    _, drawn = await told(rig, "image", prompt='a sign that says "PLATFORM 4"', size="512x512")
    [picture] = drawn.artifacts
    assert drawn.report.usage.images == 1
    output, read = await told(rig, "ocr", image={"artifact": picture.sha256}, task="parse_layout")
    assert "PLATFORM 4" in output["text"]
    assert all(0 <= left <= 512 and width > 0 for left, _, width, _ in (block["box"] for block in output["blocks"]))
    assert read.report.usage.pages == 1


async def test_a_sentence_is_spoken(rig) -> None:
    """SYN-1: sound is an artifact, counted by its characters."""
    _, spoken = await told(rig, "speech", text="The train leaves at nine.", voice="nova")
    assert [item.media_type for item in spoken.artifacts] == ["audio/mpeg"]
    assert spoken.report.usage.characters == 25
