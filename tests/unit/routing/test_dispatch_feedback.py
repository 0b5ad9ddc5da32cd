"""What the end of an Attempt tells capacity, and what capacity says in words to a Task that waits."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.routing.domain.calls.sizing import digest_of, tokens_to_reserve
from services.routing.domain.catalog import Kind, Price
from services.routing.domain.feedback import SILENT, Feedback, Pace
from services.routing.domain.task import TaskState
from services.routing.ports import Delivered, Refused, Submitted
from tests.support.worlds import START
from tests.unit.routing.dispatch_fakes import FILM, stage
from tests.unit.routing.dispatch_offers import catalog, supply


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({}, None),
        ({"seconds": 5}, None),
        ({"total_tokens": 900, "completion_tokens": 900}, 900),
        ({"input_tokens": 20, "output_tokens": 30.0}, 50),
        ({"total_tokens": -1, "output_tokens": True}, None),
    ],
)
async def test_a_success_is_told_with_the_tokens_that_it_used(usage: dict[str, Any], tokens: int | None):
    """CAP-6, CAP-7: the release says that the provider did the work, and how many tokens, where it counts any."""
    play = stage()
    play.provider.answers["a/clip"] = [Submitted("job", Delivered((FILM,), {}, usage))]
    await play.submit()
    await play.work()
    (attempt,) = (await play.task()).attempts
    assert play.capacity.told == {attempt.lease_id: Feedback(Pace.SUCCEEDED, used_tokens=tokens)}


async def test_a_chat_that_is_a_task_takes_its_window_of_tokens():
    """CAP-6: it reserves what a call of the same words would, and the clips beside it reserve none."""
    limits = {"max_output_tokens": 50}
    prices = {"second": Price("second", 1, 1, "CNY", "per_token", {"input_per_million": "1.00"})}
    offers = catalog(supply("a/chat", kind=Kind.CHAT, capabilities=limits), prices=prices)
    chat = replace(offers.models["clip"], kind=Kind.CHAT)
    play = stage(offers=replace(offers, models={"clip": chat}))
    play.provider.answers["a/chat"] = [Submitted("", Delivered((), {"text": "a quay"}, {"output_tokens": 9}))]
    given = {"messages": [{"role": "user", "content": "Write a line."}]}
    await play.submit(input=given)
    await play.work()
    (attempt,) = (await play.task()).attempts
    asked = tokens_to_reserve(Kind.CHAT, digest_of(Kind.CHAT, given), offers.supplies["a/chat"])
    assert play.capacity.tokens == {attempt.lease_id: asked}
    assert asked > 50
    clips = stage()
    await clips.submit()
    await clips.work()
    assert set(clips.capacity.tokens.values()) == {0}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Fault.of("rate_limited", "slow down", retry_after_ms=7000), Feedback(Pace.CONGESTED, 7000)),
        (Fault.of("out_of_stock", "no machine free"), Feedback(Pace.CONGESTED)),
        (Fault.of("provider_error", "it answered 500"), SILENT),
        (Fault.of("content_rejected", "a forbidden scene"), SILENT),
        (Fault.of("overloaded", "our own adapter is full"), SILENT),
    ],
)
async def test_only_a_provider_that_was_full_is_congested(answer: Fault, told: Feedback):
    """CAP-7: a 429 or a full queue is told, with its Retry-After; other failures and refusals of our own are not."""
    play = stage(offers=catalog(supply("a/clip")))
    play.provider.answers["a/clip"] = [answer]
    await play.submit()
    await play.work()
    first = (await play.task()).attempts[0]
    assert play.capacity.told[first.lease_id] == told


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (
            Refused("supply a/clip", "frozen", 0, 0, START + timedelta(seconds=60)),
            "capacity: supply a/clip frozen until 2026-01-01T12:01:00Z: its provider asked not to be asked before",
        ),
        (
            Refused("supply a/clip", "adaptive", 2, 2),
            "capacity: supply a/clip adaptive 2 of 2: its provider was congested, slots come back with successes",
        ),
        (
            Refused("channel a", "learning", 0, 0, START + timedelta(seconds=60)),
            "capacity: channel a learning until 2026-01-01T12:01:00Z: the server of leases lost its memory, nothing new"
            " is admitted before",
        ),
    ],
)
async def test_a_gate_that_no_number_explains_is_told_in_words(refused: Refused, reason: str):
    """ATT-10: adaptive, frozen and learning gates say what they wait for and, where it is known, until when."""
    play = stage(offers=catalog(supply("a/clip")))
    play.capacity.refusals = [refused] * 9
    await play.submit()
    await play.work()
    waiting = await play.task()
    assert (waiting.state, waiting.waiting_reason) == (TaskState.QUEUED, reason)
