"""A streamed call over fakes of the ports: what is held back, which watchdog waits, what an end means."""

import json
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from libs.faults.fault import Fault
from libs.kernel.deadlines import deadline_at
from services.provider_adapter.adapters.google.stream import reader
from services.provider_adapter.app.conversation import Conversation
from services.provider_adapter.app.materials import ArtifactsOnly, Materials
from services.provider_adapter.app.stream import Ended, StreamCall
from services.provider_adapter.domain.calls import Watch
from services.provider_adapter.domain.exchange import Broken, ExchangeBroken
from services.provider_adapter.domain.inputs import JsonInput
from services.provider_adapter.domain.job import Endpoint, Job, Timeouts
from services.provider_adapter.settings import Settings
from services.provider_adapter.store.secrets import ReferencedSecrets
from tests.support.worlds import steered_world
from tests.unit.provider_adapter.fakes import MemoryMedia, PlayedStream, PlayedTransport

ENDPOINT = Endpoint("c-main", "openai", "https://p.example/v1", "env:KEY", Timeouts(submit_s=30))
JOB = Job("a", "t", "chat", "m", JsonInput(b'{"messages": [{"role": "user", "content": "Hi"}]}'))


def said(text: str) -> bytes:
    """A chunk that says something, or opens a message when it says nothing."""
    delta = {"content": text} if text else {"role": "assistant"}
    return b"data: %b\n\n" % json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode()


DONE = b"data: [DONE]\n\n"
UNWATCHED = Watch()


class Listener:
    """One streamed call and all that came of it."""

    def __init__(self, play: Any, **more: Any) -> None:
        self.job = structs.replace(JOB, input=JsonInput(json.dumps({**JOB.input, **more}).encode()))
        _, self.clock = steered_world()
        self.transport = PlayedTransport([play])
        talk = Conversation(self.transport, ReferencedSecrets({"KEY": "k"}), self.clock, margin_s=0.5)
        materials = Materials(MemoryMedia(), ArtifactsOnly(), None, self.clock, Settings("memory").material_bytes)
        self.call = StreamCall(talk, materials, self.clock)
        self.chunks: list[bytes] = []

    async def hear(self, watch: Watch = UNWATCHED, pause_s: float = 0) -> Ended | Fault:
        """The end: the report, or the fault. The listener takes `pause_s` over each chunk."""
        try:
            async with aclosing(self.call(ENDPOINT, self.job, watch)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Ended):
                        return piece
                    self.chunks += piece
                    self.clock.advance(pause_s)
        except Fault as fault:
            return fault
        raise AssertionError("no end")


async def test_each_watchdog_waits_from_its_own_moment() -> None:
    """SYN-8: the first runs from the sending, whatever chunks without a word come; the second from the newest token."""
    play = PlayedStream([said(""), said("a"), said(""), said("b"), DONE])
    listener = Listener(play)
    steps = [1.0, 2.0, 0.1, 0.2, 0.3]
    play.before = lambda number: listener.clock.advance(steps[number])
    end = await listener.hear(Watch(first_token_s=10, inter_token_s=4))
    assert isinstance(end, Ended)
    assert play.waits == pytest.approx([10, 9, 4, 3.9, 4])
    assert end.first_token_s == pytest.approx(3.0)
    [(_, target)] = listener.transport.sent
    assert target.first_s == 10


async def test_a_slow_caller_is_no_silence() -> None:
    """SYN-8: time that the caller takes over a chunk is not the provider's."""
    listener = Listener(PlayedStream([said("a"), said("b"), said("c"), DONE]))
    assert isinstance(await listener.hear(Watch(inter_token_s=4), pause_s=60), Ended)
    assert len(listener.chunks) == 3


async def test_without_watchdogs_the_submission_limits_and_the_caller_does() -> None:
    """SYN-8 SYN-1: no silence outlasts the channel's own limit, nor the caller's deadline less a margin."""
    play = PlayedStream([said("a"), DONE])
    await Listener(play).hear()
    assert play.waits == [30, 30]
    play = PlayedStream([said("a"), DONE])
    with deadline_at(5.5):
        await Listener(play).hear()
    assert play.waits == [5, 5]


@pytest.mark.parametrize("parts", [[], [said("")]], ids=["nothing", "no-word"])
async def test_time_that_has_run_out_is_not_waited_for(parts: list[Any]) -> None:
    """SYN-8: a watchdog that is due bites before the next read, and no chunk without a word was handed on."""
    play = PlayedStream([*parts, said("late"), DONE])
    listener = Listener(play)
    play.before = lambda number: listener.clock.advance(10 if number + 1 == len(parts) else 0)
    if not parts:
        play.parts.insert(0, ExchangeBroken(Broken.READ_TIMEOUT, 200))
    fault = await listener.hear(Watch(first_token_s=5))
    assert isinstance(fault, Fault)
    assert (fault.code, listener.chunks) == ("submission_unknown", [])


@pytest.mark.parametrize("how", [Broken.RESET, Broken.INCOMPLETE_BODY, Broken.READ_TIMEOUT, None])
@pytest.mark.parametrize("words", [0, 2])
async def test_an_end_that_proves_nothing(how: Broken | None, words: int) -> None:
    """SYN-8 ERR-1a: before a word nobody knows; after one the stream was interrupted, and may have been charged."""
    broken = [] if how is None else [ExchangeBroken(how, 200)]
    listener = Listener(PlayedStream([said(""), *[said("a")] * words, *broken]))
    fault = await listener.hear()
    assert isinstance(fault, Fault)
    assert fault.code == ("stream_interrupted" if words else "submission_unknown")
    assert fault.metadata.get("possibly_charged") == ("true" if words else None)
    assert len(listener.chunks) == (3 if words else 0)


async def test_before_a_connection_nothing_was_sent() -> None:
    """ERR-1: a connection that could not be made is the channel's failure, streamed or not."""
    fault = await Listener(ExchangeBroken(Broken.CONNECT_REFUSED)).hear()
    assert isinstance(fault, Fault)
    assert (fault.code, fault.retryable) == ("connect_failed", True)


async def test_a_break_after_the_last_event_is_no_break() -> None:
    """SYN-8: what the provider called the end is the end, however its connection goes on."""
    end = await Listener(PlayedStream([said("a"), DONE, ExchangeBroken(Broken.RESET, 200)])).hear()
    assert isinstance(end, Ended)


@given(st.lists(st.sampled_from(["", "a", "b"]), max_size=6), st.integers(0, 400))
async def test_a_stream_is_its_words_and_its_end(words: list[str], cut: int) -> None:
    """SYN-8: every chunk is handed on in order from the first that says something on; the end is clean only with the
    last event in full, and where something was said."""
    whole = b"".join(map(said, words)) + DONE
    listener = Listener(PlayedStream([part for part in (whole[:cut], whole[cut:]) if part]))
    spoken = any(words)
    assert isinstance(await listener.hear(), Ended) == spoken
    handed_on = b"".join(b"data: %b\n\n" % chunk for chunk in listener.chunks)
    assert handed_on == (whole.removesuffix(DONE) if spoken else b"")
    truncated = Listener(PlayedStream([whole[:cut]] if cut else []))
    end = await truncated.hear()
    assert isinstance(end, Ended) == (spoken and whole[:cut].rstrip() == whole.rstrip())
    if isinstance(end, Fault):
        given_out = "".join(json.loads(chunk)["choices"][0]["delta"].get("content", "") for chunk in truncated.chunks)
        assert "".join(words).startswith(given_out)
        assert end.code == ("stream_interrupted" if truncated.chunks else "submission_unknown")


async def test_half_an_emoji_does_not_end_a_stream() -> None:
    """SYN-7: a piece with half a character is handed on in a form that every reader of JSON takes."""
    half = b'data: {"choices": [{"index": 0, "delta": {"content": "a\\ud83d"}}]}\n\n'
    end = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
    listener = Listener(PlayedStream([said(""), half, end, DONE]))
    assert isinstance(await listener.hear(), Ended)
    assert msgspec.json.decode(listener.chunks[1])["choices"][0]["delta"] == {"content": "a\ufffd"}


def chosen(index: int = 0, finish_reason: str | None = None, **delta: Any) -> bytes:
    """A chunk of one choice."""
    choice = {"index": index, "delta": delta, "finish_reason": finish_reason}
    return b"data: %b\n\n" % json.dumps({"choices": [choice]}).encode()


@pytest.mark.parametrize("events", [[DONE], [said(""), DONE]])
async def test_an_end_without_a_word_is_no_answer(events: list[bytes]) -> None:
    """SYN-8: a stream that closes properly but has said nothing, not even why, is a fault and hands nothing on."""
    listener = Listener(PlayedStream(events))
    fault = await listener.hear()
    assert isinstance(fault, Fault)
    assert (fault.code, listener.chunks) == ("submission_unknown", [])
    assert fault.metadata["evidence"] == "the stream ended without a word"


async def test_the_reason_of_a_silent_stream_is_found_before_its_end() -> None:
    """ERR-1: an error under a 200, followed by the mark of the end, is that error and not a silence."""
    reason = b'data: {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}\n\n'
    fault = await Listener(PlayedStream([reason, DONE])).hear()
    assert isinstance(fault, Fault)
    assert fault.code == "balance_exhausted"


CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}


@pytest.mark.parametrize(
    "events",
    [
        [chosen(role="assistant", content=None, tool_calls=[CALL])],
        [chosen(role="assistant"), chosen(tool_calls=[CALL]), chosen(finish_reason="tool_calls")],
        [chosen(role="assistant", function_call={"name": "f", "arguments": ""})],
        [chosen(role="assistant"), chosen(finish_reason="length")],
        [chosen(role="assistant", finish_reason="stop")],
        [chosen(reasoning_content="hm"), chosen(finish_reason="length")],
    ],
    ids="calls calls-late function no-token-left role-and-end thoughts".split(),
)
async def test_an_answer_without_words_is_one(events: list[bytes]) -> None:
    """SYN-8: calls of tools, thoughts, and an end that says why it came to no word are handed on as they are."""
    listener = Listener(PlayedStream([*events, DONE]))
    assert isinstance(await listener.hear(), Ended)
    assert len(listener.chunks) == len(events)


REFUSED = (chosen(0, role="assistant", refusal=""), chosen(0, refusal="I will not."), chosen(0, finish_reason="stop"))
FILTERED = (chosen(1, role="assistant"), chosen(1, finish_reason="content_filter"))
SPOKEN = (chosen(1, content="Yes."), chosen(1, finish_reason="stop"))


@pytest.mark.parametrize("choices, events", [(1, REFUSED), (2, REFUSED + FILTERED), (3, FILTERED), (1, FILTERED)])
async def test_what_only_refuses_is_a_refusal_of_the_request(choices: int, events: tuple[bytes, ...]) -> None:
    """ERR-1 SYN-8: of every choice that came, however many were asked for; nothing is handed on."""
    listener = Listener(PlayedStream([*events, DONE]), n=choices)
    fault = await listener.hear()
    assert isinstance(fault, Fault)
    assert (fault.code, listener.chunks) == ("content_rejected", [])
    assert fault.metadata["answered"] == ""


@pytest.mark.parametrize("events", [REFUSED + SPOKEN, SPOKEN[:1] + REFUSED + SPOKEN[1:]])
async def test_one_choice_that_refuses_does_not_silence_another(events: tuple[bytes, ...]) -> None:
    """SYN-8: as in an answer that comes whole, a refusal beside an answer is handed on with it."""
    listener = Listener(PlayedStream([*events, DONE]), n=2)
    assert isinstance(await listener.hear(), Ended)
    assert len(listener.chunks) == len(events)


def test_a_filtered_candidate_of_gemini_does_not_silence_another() -> None:
    """SYN-8: the same in Gemini's words, where a candidate that was filtered says so at once."""
    filtered = {"candidates": [{"index": 0, "finishReason": "SAFETY"}]}
    spoken = {"candidates": [{"index": 1, "content": {"parts": [{"text": "Yes."}]}, "finishReason": "STOP"}]}
    refused = {"candidates": [{"index": 1, "finishReason": "SAFETY"}]}
    for last, refuses in ((spoken, False), (refused, True)):
        found = reader(structs.replace(JOB, model="gemini-2.5-flash", input={**JOB.input, "n": 2}), {})
        found.feed(b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in (filtered, last)))
        assert (found.failure is not None) is refuses
        assert found.spoke is found.ended is not refuses
