"""One current reason for whoever waits, and one snapshot of health for every kind."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.routing.domain.catalog import Binding, Catalog, Kind, Tier
from services.routing.domain.decision import HealthView
from services.routing.domain.request_facts import billing_mode
from services.routing.domain.selection_record import recorded_decision, recorded_inputs
from services.routing.domain.task import TERMINAL_TASKS, AttemptState, TaskState
from services.routing.ports import Polled, Reconciled
from tests.unit.routing.dispatch_fakes import Stage, stage
from tests.unit.routing.dispatch_offers import MODEL, catalog, supply

WORDS = ("queue", "capacity", "health", "retry", "uncertain", "provider", "cancel", "model", "price", "governance")
"""What a reason begins with: the table of the guide of dispatch."""


def full(play: Stage) -> None:
    """One slot, and its job does not end."""
    play.provider.polls = [Polled("running")] * 10_000


def closed(play: Stage) -> None:
    """Both circuits are open."""
    until = play.clock.now() + timedelta(seconds=50)
    for name in ("a/clip", "b/clip"):
        play.health.supplies[name] = HealthView("circuit_open", 2, 3, 0, cooldown_until=until)


def failing(play: Stage) -> None:
    """The only provider left asks to come back later."""
    play.health.supplies["b/clip"] = HealthView("disabled", 2, 3, 0)
    play.provider.answers["a/clip"] = [Fault.of("rate_limited", "busy", retry_after_ms=20_000)] * 8


def silent(play: Stage) -> None:
    """Nobody knows whether it was taken."""
    play.provider.answers = {name: [None] for name in ("a/clip", "b/clip")}
    play.provider.verdicts = [Reconciled("unknown", "", "not listed")] * 1000


def unheard(play: Stage) -> None:
    """Polls are not answered."""
    play.provider.polls = [Fault.of("connect_failed", "away")] * 1000


def health_away(play: Stage) -> None:
    """One of our own parts is away."""
    play.health.away = Fault.of("peer_unavailable", "gone")


def withdrawn(play: Stage) -> None:
    """The model is not published any more."""
    known = play.catalog.revisions[-1]
    models = {MODEL: replace(known.models[MODEL], published=False)}
    play.catalog.revisions.append(replace(known, revision=known.revision + 1, models=models))


CAUSES: tuple[Callable[[Stage], None], ...] = (full, closed, failing, silent, unheard, health_away, withdrawn)


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.__name__)
async def test_whoever_waits_has_one_current_reason(cause: Callable[[Stage], None]):
    """ATT-10: whatever holds Tasks up, at every moment each that waits tells one reason, of a word that is known; it is
    the newest one, and gone once it waits no more."""
    play = stage(offers=catalog(supply("a/clip", 1), supply("b/clip", 1)))
    for number in range(4):
        await play.submit(f"t{number}")
    await reasons_hold(play)
    cause(play)
    seen: set[str] = set()
    for _ in range(45):
        await play.pass_time(1)
        seen |= await reasons_hold(play)
    assert seen
    play.health.away = None


async def reasons_hold(play: Stage) -> set[str]:
    """The words of the reasons that are told now."""
    words = set()
    for number in range(4):
        task = await play.task(f"t{number}")
        live = task.live
        doubted = live is not None and live.state is AttemptState.SUBMISSION_UNCERTAIN
        if task.state is TaskState.QUEUED or doubted:
            word, colon, rest = task.waiting_reason.partition(":")
            assert (word in WORDS, colon, bool(rest.strip())) == (True, ":", True), task.waiting_reason
            assert "\n" not in task.waiting_reason
            words.add(word)
        elif task.state in TERMINAL_TASKS:
            assert task.waiting_reason == ""
    return words


KINDS = tuple(Kind)


def of_every_kind() -> Catalog:
    """A model of each kind, each on a Supply of its own, all of one Channel."""
    base = catalog(supply("a/clip"))
    supplies = {
        f"a/{kind}": replace(base.supplies["a/clip"], id=f"a/{kind}", kind=kind, prices=(str(kind),)) for kind in KINDS
    }
    prices = {
        str(kind): replace(base.prices["second"], id=str(kind), billing_mode=billing_mode(kind, "")) for kind in KINDS
    }
    models = {
        str(kind): replace(
            base.models[MODEL], id=str(kind), kind=kind, bindings=(Binding(f"a/{kind}", Tier.EXACT),)
        )
        for kind in KINDS
    }  # fmt: skip
    return replace(base, supplies=supplies, models=models, prices=prices)


async def test_every_kind_reads_the_same_snapshot():
    """HLT-14: image, video and every other kind: one look at health serves a turn with Tasks of all of them, and a
    Channel that it shows open is open to each; once it is not, each goes on."""
    looks = 0

    async def count(effect: str) -> None:
        nonlocal looks
        looks += effect == "health.snapshot"

    play = stage(offers=of_every_kind(), effect=count)
    until = play.clock.now() + timedelta(seconds=30)
    play.health.channels["a"] = HealthView("circuit_open", 2, 7, 0, cooldown_until=until)
    for kind in KINDS:
        await play.submit(str(kind), model=str(kind), input=INPUTS[kind])
    await play.work()
    assert looks == 1
    for kind in KINDS:
        (made,) = await play.desk.store.rounds(str(kind))
        assert recorded_inputs(made.record).channel_health["a"] == play.health.channels["a"]
        assert [(fate.step, fate.reason) for fate in recorded_decision(made.record).fates] == [
            ("SEL-8", "circuit_open")
        ], recorded_decision(made.record).fates
    play.health.channels["a"] = HealthView("probing", 2, 8)
    for kind in KINDS:
        await play.submit(f"{kind} again", model=str(kind), input=INPUTS[kind])
    await play.pass_time(10)
    ends = [(await play.task(f"{kind} again")).state for kind in KINDS]
    assert ends == [TaskState.SUCCEEDED] * len(KINDS)


INPUTS: dict[Kind, dict[str, Any]] = {
    Kind.VIDEO: {"prompt": "a boat", "duration_s": 5},
    Kind.IMAGE: {"prompt": "a boat"},
    Kind.CHAT: {"messages": [{"role": "user", "content": "a boat"}]},
    Kind.EMBEDDING: {"input": ["a boat"]},
    Kind.OCR: {"image": {"url": "https://example.com/boat.png"}},
    Kind.SPEECH: {"text": "a boat"},
}
"""The least that a model of each kind takes."""


async def test_an_attempt_gives_health_one_outcome():
    """HLT-13: its first infrastructure failure or its final success: acceptance, polls, failed polls and doubts tell
    nothing, and nothing is told twice."""
    play = stage()
    play.provider.answers["a/clip"] = [Fault.of("provider_error", "500")]
    play.provider.answers["b/clip"] = [None]
    play.provider.polls = [Polled("queued"), Fault.of("connect_failed", "away"), Polled("running")]
    await play.submit()
    await play.pass_time(30)
    task = await play.task()
    assert [attempt.state for attempt in task.attempts] == [AttemptState.FAILED, AttemptState.SUCCEEDED]
    told = {name: failure.code if failure else "success" for name, failure in play.health.outcomes.items()}
    assert told == {task.attempts[0].id: "provider_error", task.attempts[1].id: "success"}
    assert play.health.tellings == 2
