"""Streamed calls through RoutingService over loopback: watchdogs, switches, broken streams, callers who leave."""

import json
from collections.abc import AsyncIterator

import pytest

from libs.faults.fault import Fault
from pointsman.routing.v1 import routing_service_pb2 as pb
from services.routing.domain.catalog import Timeouts
from services.routing.domain.feedback import Pace
from tests.unit.routing.call_stage import (
    HELLO,
    ROLE,
    CallStage,
    Then,
    call_stage,
    chat_catalog,
    chunk,
    request,
    seconds,
    serving,
)

LIMITS = Timeouts(ttft_s=20.0, inter_token_s=15.0)
WORDS = (ROLE, chunk("Good "), chunk("morning."))


@pytest.fixture
async def play() -> AsyncIterator[CallStage]:
    """Two Supplies behind one model, watched."""
    async with serving(call_stage(chat_catalog(timeouts=LIMITS))) as made:
        yield made


async def test_a_stream_is_passed_on_and_settled(play: CallStage):
    """SYN-8, SYN-11: every piece as it came, the call last; time to first token, usage and cost on record."""
    play.script("a/talk", Then(after_s=2.0, chunks=WORDS, apart_s=1.0))
    heard = await play.stream()
    assert heard.pieces == list(WORDS)
    assert heard.call is not None
    told = await play.call()
    attempt = told.attempts[0]
    assert (attempt.state, attempt.usage.output_tokens, attempt.cost.nanos) == ("succeeded", 6, 160_000_000)
    assert attempt.time_to_first_token.ToSeconds() == 3
    assert seconds(told.times) == (4.0, 0.0)
    assert play.provider.calls[0][1].inter_token_s == 15.0


async def test_pieces_that_come_at_once_come_in_one_message(play: CallStage):
    """SYN-8: who permits it is given them together and in order, the role that was held back among them; who does not
    is given each in a message of its own."""
    play.script("a/talk", Then(chunks=WORDS, together=True))
    messages = []
    for together in (True, False):
        asked = pb.InvokeStreamRequest(request=request(f"c{together}", HELLO), together=together)
        messages.append([piece async for piece in play.stub.InvokeStream(asked, timeout=60)])
    at_once, alone = messages
    assert [json.loads(piece) for piece in at_once[0].chunks] == list(WORDS)
    assert (len(at_once), at_once[0].WhichOneof("piece"), at_once[1].WhichOneof("piece")) == (2, None, "call")
    assert [json.loads(piece.chunk) for piece in alone[:-1]] == list(WORDS)
    assert not any(piece.chunks for piece in alone)


async def test_a_first_token_that_never_comes(play: CallStage):
    """SYN-8, SYN-3: the watchdog ends the try, another Supply serves the stream, nobody has heard of the first; its
    time was productive, and that it may have been charged is on record."""
    play.script("a/talk", Then(chunks=(ROLE,), hangs=True))
    play.script("b/talk", Then(chunks=WORDS))
    heard = await play.stream()
    assert (heard.words, heard.fault) == ("Good morning.", None)
    assert heard.pieces == list(WORDS)
    assert [play.provider.sent(name) for name in ("a/talk", "b/talk")] == [1, 1]
    assert play.provider.left == ["a/talk"]
    told = await play.call()
    assert [(item.state, item.possible_charge) for item in told.attempts] == [("unknown", True), ("succeeded", False)]
    assert told.attempts[0].failure.code == "submission_unknown"
    assert seconds(told.times) == (20.0, 0.0)
    assert told.supply_id == "b/talk"
    failures = [failure and failure.code for failure in play.health.outcomes.values()]
    assert sorted(failures, key=str) == [None, "provider_timeout"]


async def test_a_stream_that_falls_silent_ends_honestly(play: CallStage):
    """SYN-8: after the first token nobody else is tried; the inter-token watchdog ends it with a fault."""
    play.script("a/talk", Then(chunks=WORDS, hangs=True))
    heard = await play.stream()
    assert heard.words == "Good morning."
    assert heard.fault is not None
    assert heard.fault.code == "stream_interrupted"
    assert "after 2 pieces" in heard.fault.message
    assert (play.provider.sent(), play.provider.left) == (1, ["a/talk"])
    assert seconds((await play.call()).times) == (15.0, 0.0)


async def test_a_stream_cut_in_the_middle(play: CallStage):
    """SYN-8, COST-12: one provider call, the fault after what was heard, and a charge by what had come until then."""
    cut = Fault.of("submission_unknown", "the connection was reset")
    play.script("a/talk", Then(chunks=WORDS, apart_s=1.0, fault=cut))
    heard = await play.stream()
    assert heard.words == "Good morning."
    assert heard.fault is not None
    assert (heard.fault.code, heard.fault.retryable) == ("stream_interrupted", False)
    assert play.provider.sent() == 1
    told = await play.call()
    attempt = told.attempts[0]
    assert (attempt.state, attempt.possible_charge, attempt.HasField("usage")) == ("unknown", True, False)
    assert attempt.cost.nanos > 0
    assert play.quotes.priced[0].usage.output_tokens == 4
    assert seconds(told.times) == (2.0, 0.0)
    assert told.failure.code == "stream_interrupted"
    (feedback,) = play.capacity.told.values()
    assert (feedback.pace, feedback.used_tokens) == (Pace.UNSAID, play.quotes.priced[0].usage.tokens)


@pytest.mark.parametrize("begun", [True, False])
async def test_a_moderation_refusal_in_a_stream(play: CallStage, begun: bool):
    """SYN-2, HLT-5: before the first token or after it, nobody else is asked, and no health is touched."""
    refusal = Fault.of("content_rejected", "the output was filtered")
    play.script("a/talk", Then(chunks=WORDS if begun else (ROLE,), fault=refusal))
    heard = await play.stream()
    assert heard.fault is not None
    assert heard.fault.code == "content_rejected"
    assert heard.words == ("Good morning." if begun else "")
    assert play.provider.sent() == 1
    told = await play.call()
    assert [item.state for item in told.attempts] == ["failed"]
    assert told.attempts[0].possible_charge is begun
    assert play.health.outcomes == {}


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("answered, charged", [("10/6", True), ("", True), (None, False)])
async def test_what_was_used_for_a_refusal_is_settled(
    play: CallStage, streamed: bool, answered: str | None, charged: bool
):
    """SYN-8, COST-9: one that the model has said costs what it tells, or else what it has surely read; one of a request
    that no model has seen costs nothing."""
    told = {} if answered is None else {"answered": answered}
    play.script("a/talk", Then(fault=Fault.of("content_rejected", "I cannot help with this one.", metadata=told)))
    fault = (await play.stream()).fault if streamed else await play.refused()
    assert fault is not None
    assert fault.code == "content_rejected"
    found = (await play.call()).attempts[0]
    assert (found.cost.nanos > 0, found.possible_charge) == (charged, charged)
    assert answered != "10/6" or found.cost.nanos == 160_000_000
    await play.desk.holds.settle_shared(everything=True)
    [(_, spent, held)] = await play.tasks.ledger.figures()
    assert (spent, held) == (found.cost.nanos / 1e9, 0)


async def test_a_caller_who_leaves_ends_the_stream(play: CallStage):
    """SYN-8, CAP-8: the provider's stream is ended, the slot is free, and what was made until then is settled."""
    play.script("a/talk", Then(chunks=(*WORDS, chunk(" How are you?")), apart_s=1.0))
    await play.stream(leave_after=2)
    told = await play.call()
    assert play.provider.left == ["a/talk"]
    assert told.attempts[0].state == "abandoned"
    assert told.attempts[0].possible_charge
    assert told.attempts[0].cost.nanos > 0
    assert not play.capacity.live()
    assert play.health.outcomes == {}


async def test_a_slow_reader_is_no_slow_provider(play: CallStage):
    """SYN-8: while a piece is on its way to the caller no watchdog runs."""
    play.script("a/talk", Then(chunks=(*WORDS, *(chunk("x") for _ in range(40)))))
    heard = await play.stream(rests_s=40.0)
    assert heard.fault is None
    assert len(heard.pieces) == 43


async def test_what_is_no_chat_is_not_streamed(play: CallStage):
    """A kind without a stream is refused before anything is asked."""
    play.catalog.revisions[0] = chat_catalog(kind="embedding")
    heard = await play.stream(given={"input": "x"})
    assert heard.fault is not None
    assert heard.fault.code == "validation_failed"
    assert play.provider.sent() == 0
