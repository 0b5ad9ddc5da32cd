"""Jobs of the queues whose answer never comes: each is sent once, whatever becomes of the connection."""

import pytest

from tests.integration.provider_adapter.raw_server import Act, RawServer, answers, drops, resets

WORKS = [
    ("fal", "video"),
    ("fal", "image"),
    ("replicate", "video"),
    ("replicate", "image"),
    ("dashscope", "video"),
    ("dashscope", "image"),
    ("openai", "video"),
]
ENDS = {
    "dropped": drops,
    "reset": resets,
    "502": answers("502 Bad Gateway", b""),
    "504": answers("504 Gateway Time-out"),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(("adapter", "kind"), WORKS)
async def test_a_submission_without_an_answer_is_sent_once(rig, job, adapter: str, kind: str, end: Act) -> None:
    """ATT-5 ERR-1a: the body was read and no proof came back: unknown, never sent again, by nobody in between."""
    async with RawServer([end]) as server:
        work = job("lost-1", kind, "acme/storms", prompt="a storm")
        fault = await rig.refusal(rig.submit("aurora", work, adapter=adapter, base_url=server.url))
        assert (fault.code, fault.retryable) == ("submission_unknown", False)
        assert len(server.requests) == 1
        assert server.requests[0].startswith("POST ")
        assert b"a storm" in server.bodies[0]


@pytest.mark.parametrize("end", [drops, resets], ids=["dropped", "reset"])
@pytest.mark.parametrize("adapter", ["fal", "replicate", "dashscope"])
async def test_a_wish_to_cancel_is_sent_once(rig, job, adapter: str, end: Act) -> None:
    """ATT-8: a second wish might do something else; a wish without an answer is a failed question."""
    async with RawServer([end]) as server:
        work = job("lost-1", "video", "acme/storms", prompt="a storm")
        fault = await rig.refusal(rig.cancel("aurora", work, "task-1", adapter=adapter, base_url=server.url))
        assert (fault.code, fault.category) == ("poll_failed", "unknown")
        assert len(server.requests) == 1
