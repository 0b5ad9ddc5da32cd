"""What a caller reads of a call that nobody served: the field, what happened, and each thing once."""

from dataclasses import replace
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.routing.domain.catalog import Kind, Limits
from services.routing.domain.decision import HealthView
from tests.contract.routing.test_calls_more import house
from tests.unit.routing.call_stage import HELLO, Then, chat_catalog, chat_supply, chunk


def speaker(name: str, *voices: str) -> Any:
    """A Supply of speech with these voices."""
    return chat_supply(name, kind=Kind.SPEECH, capabilities={"voices": list(voices)})


async def test_what_nobody_has_is_told_once_at_its_field():
    """EDG-1, SYN-12: the field that asks for it is named, with what each Supply has instead, and no other field is."""
    async with house(chat_catalog(speaker("a/tts", "zoe"), speaker("b/tts", "zoe"), speaker("c/tts", "max"))) as play:
        fault = await play.refused(given={"text": "Good morning.", "voice": "bob"})
    assert fault.code == "validation_failed"
    assert [(error.pointer, error.reason) for error in fault.errors] == [
        (
            "/input/voice",
            "asks for what model 'talk' has not got: needs voice bob, admits zoe at a/tts, b/tts; admits max at c/tts",
        )
    ]


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"max_tokens": 1000}, "/input/max_tokens"),
        ({"max_completion_tokens": 1000}, "/input/max_completion_tokens"),
        ({}, "/input/max_completion_tokens"),
        ({"max_tokens": 1, "messages": [{"role": "user", "content": "x" * 8000}]}, "/input/messages"),
    ],
)
async def test_more_tokens_than_a_minute_admits_are_named_by_the_field_that_asks(given: dict[str, Any], pointer: str):
    """EDG-1, CAP-1: time does not cure it, so it is the caller's to mend, under a name of his own."""
    offers = chat_catalog(chat_supply("a/talk"))
    offers = replace(offers, channels={"a": replace(offers.channels["a"], limits=Limits(tpm=300))})
    async with house(offers) as play:
        fault = await play.refused(given={"messages": HELLO["messages"], **given})
        assert play.provider.sent() == 0
    assert (fault.code, [error.pointer for error in fault.errors]) == ("validation_failed", [pointer])
    assert "tokens at once, channel a admits 300 a minute at a/talk" in fault.message


async def test_another_supply_takes_what_one_admits_in_no_minute():
    """SEL-5, SYN-2: an operator's limit of one Supply is no fault of the request while another has room for it."""
    narrow = chat_supply("a/talk", limits=Limits(concurrency=5, tpm=50))
    async with house(chat_catalog(narrow, chat_supply("b/talk"))) as play:
        answer = await play.invoke()
        assert answer.call.supply_id == "b/talk"
        (round_,) = (await play.call()).selections
        assert [(fate.supply_id, fate.step, fate.reason) for fate in round_.candidates if fate.step] == [
            ("a/talk", "SEL-5", "tokens_at_once"),
        ]  # fmt: skip


async def test_the_record_of_a_call_says_each_thing_once():
    """SYN-6: what the message holds is not told again behind it."""
    async with house() as play:
        for name in ("a/talk", "b/talk"):
            play.health.supplies[name] = HealthView("circuit_open", epoch=1, revision=1, limit=0)
        fault = await play.refused()
        told = (await play.call()).failure
    assert told.message == fault.message
    assert told.message.count("SEL-8 supply a/talk circuit_open") == 1


async def test_who_was_left_out_is_said_to_be():
    """SYN-6: of a supply that no try was left for, no reason is invented; times are told to the hundredth."""
    async with house(chat_catalog(sync={"max_attempts": 1, "total_timeout_s": 7.12345})) as play:
        play.script("a/talk", Then(hangs=True))
        fault = await play.refused()
    assert [(error.pointer, error.reason) for error in fault.errors] == [
        ("a/talk", "no answer from a/talk within 7.12 s"),
        ("b/talk", "was not asked"),
    ]


async def test_a_stream_that_broke_off_is_told_once():
    """SYN-8: where the reader of the provider has said so already, it is not said again."""
    async with house() as play:
        cut = Fault.of("stream_interrupted", "the stream broke off after 2 pieces")
        play.script("a/talk", Then(chunks=(chunk("Good"), chunk(" morning")), fault=cut))
        heard = await play.stream()
    assert heard.fault is not None
    assert heard.fault.message.count("broke off") == 1
