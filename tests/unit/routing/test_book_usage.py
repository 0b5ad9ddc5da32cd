"""What a delivered Attempt is booked at, and the alert where the witnesses of a delivery disagree."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.domain.decision import QuoteView
from services.routing.domain.drift import Delivery, Tolerance, drift_alerts
from services.routing.domain.measure import Measure
from services.routing.domain.task import Artifact, Attempt, TaskState
from services.routing.domain.usage import Usage, price_facts
from services.routing.ports import Delivered, Polled
from services.routing.ports.alerts import AlertQuery
from services.routing.ports.prices import UsagePrice
from tests.contract.routing.tasks_stores import attempt as some_attempt
from tests.contract.routing.tasks_stores import queued
from tests.unit.routing.dispatch_fakes import FILM, Stage, stage

PICTURE = {"url": "https://example.com/a.png"}


def cny(amount: str) -> Money:
    """That much."""
    return Money("CNY", Decimal(amount))


async def played(usage: dict[str, Any], price: UsagePrice | None = None, **given: Any) -> Stage:
    """A Task whose job delivered with that usage; its Supply was quoted at 1 CNY by version 3 of `second`."""
    play = stage()
    play.quotes.views["a/clip"] = QuoteView(Decimal(1), rule_id="second", rule_version=3, kind="exact")
    if price is not None:
        play.quotes.prices["a/clip"] = price
    play.provider.cost = given.get("cost")
    play.provider.polls = [Polled("succeeded", Delivered((FILM,), {}, usage, given.get("cost")))]
    play.quotes.away = given.get("away")
    await play.submit(input={"prompt": "a boat", "duration_s": 5, "ratio": "adaptive", "reference_images": [PICTURE]})
    await play.pass_time(5)
    assert (await play.task()).state is TaskState.SUCCEEDED
    return play


async def booked(play: Stage) -> tuple[Money | None, list[str]]:
    """The cost of the Attempt, and the words of what drifted."""
    page, _ = await play.desk.store.alerts(AlertQuery(kind="cost_drift"))
    return (await play.task()).attempts[0].cost, [alert.message for alert in page]


async def test_reported_usage_is_booked_by_the_rule_that_quoted() -> None:
    """COST-3: the price of the usage takes the place of the quote; the rule, its version, its revision and the hour of
    the submission are told, and no words of the caller."""
    play = await played({"seconds": 5}, UsagePrice(cny("1.02"), "exact"))
    assert await booked(play) == (cny("1.02"), [])
    [item] = play.quotes.settled
    attempt = (await play.task()).attempts[0]
    assert (item.key, item.rule_id, item.rule_version, item.supply) == (attempt.id, "second", 3, "a/clip")
    assert (item.catalog_revision, item.submitted_at) == (attempt.catalog_revision, attempt.submitted_at)
    assert (item.usage, item.facts) == (
        Usage(seconds=Decimal(5)), {"duration_s": 5, "ratio": "adaptive", "reference_images": [True]},
    )  # fmt: skip


@pytest.mark.parametrize("usage", [{}, {"final_unit_deduction": "3"}])
async def test_without_usage_the_quote_stands(usage: dict[str, Any]) -> None:
    """COST-3: what was not reported is not asked about."""
    play = await played(usage, UsagePrice(cny("9")))
    assert await booked(play) == (cny("1"), [])
    assert play.quotes.settled == []


async def test_a_price_that_cannot_be_had_costs_no_result() -> None:
    """SYN-7, COST-3: cost_quote away, or without a price for it: the Task succeeds and the quote is booked."""
    away = Fault.of("governance_backend_down", "away", retry_after_ms=5000)
    play = await played({"seconds": 5}, away=away)
    assert await booked(play) == (cny("1"), [])
    play = await played({"seconds": 5}, UsagePrice(None, unpriced_reason="no figure"))
    assert await booked(play) == (cny("1"), [])


async def test_what_the_provider_says_it_charged_is_booked_and_compared() -> None:
    """COST-3, OPS-6: the provider's own word on the money stands above ours, and the difference is an alert on the
    Supply."""
    play = await played({"seconds": 5}, UsagePrice(cny("1.00"), "exact"), cost=cny("1.50"))
    cost, [message] = await booked(play)
    assert cost == cny("1.50")
    assert "1.50 CNY is booked against an exact quote of 1.00 CNY" in message
    assert "the provider charges 1.50 CNY for usage that costs 1.00 CNY by second" in message
    page, _ = await play.desk.store.alerts(AlertQuery(kind="cost_drift"))
    assert (page[0].subject, page[0].severity, page[0].link) == ("a/clip", "high", "/v1/tasks/t1")


def attempt(kind: str = "exact", **given: Any) -> Attempt:
    """One quoted at 10 CNY for that input."""
    made = some_attempt(queued("t1"))
    return replace(made, quote=cny("10"), quote_kind=kind, price_rule="second", input=given)


def film(width: int = 0, height: int = 0, duration_s: float = 0.0, media_type: str = "video/mp4") -> Artifact:
    """One output."""
    return Artifact("f" * 64, media_type, 9, width, height, duration_s)


def words(made: Attempt, cost: str = "10", settled: str = "", **known: Any) -> str:
    """What drifted."""
    usage, output = known.get("usage", Usage()), known.get("output", {})
    priced = cny(settled) if settled else None
    delivery = Delivery(cny(cost), priced, usage, output, known.get("artifacts", ()))
    return "; ".join(draft.message.partition(": ")[2] for draft in drift_alerts(made, delivery))


@pytest.mark.parametrize(
    ("kind", "cost", "settled", "expected"),
    [
        ("exact", "10", "10", ""),
        ("exact", "10.50", "", ""),
        ("exact", "10.51", "", "10.51 CNY is booked against an exact quote of 10.00 CNY"),
        ("exact", "9.49", "", "9.49 CNY is booked against an exact quote of 10.00 CNY"),
        ("ceiling", "1", "1.04", ""),
        ("ceiling", "10.000000001", "", "10.000000001 CNY is booked, more than the ceiling of 10.00 CNY"),
        ("ceiling", "2", "1", "the provider charges 2.00 CNY for usage that costs 1.00 CNY by second"),
        ("", "99", "", ""),
    ],
)
def test_money_drifts(kind: str, cost: str, settled: str, expected: str) -> None:
    """OPS-6: beyond 5 % of an exact quote or of what usage costs, and above a ceiling at all."""
    assert words(attempt(kind), cost, settled) == expected


@pytest.mark.parametrize(
    ("asked", "reported", "delivered", "expected"),
    [
        (5, "5", 5.04, ""),
        (5, "6", 0, ""),
        (5, "6.1", 0, "5 s asked, 6.1 s reported"),
        (5, None, 3.9, "5 s asked, 3.9 s delivered"),
        (5, "10", 5.0, "5 s asked, 10 s reported, 5 s delivered"),
        (60, "62.9", 0, ""),
        (-1, "9", 5.0, "9 s reported, 5 s delivered"),
        (-1, None, 5.0, ""),
        ("long", "5", 0, ""),
    ],
)
def test_lengths_drift(asked: Any, reported: str | None, delivered: float, expected: str) -> None:
    """OPS-6: asked, reported and delivered seconds agree within a second or 5 %, whoever of them spoke."""
    usage = Usage(seconds=Decimal(reported) if reported else None)
    assert words(attempt(duration_s=asked), usage=usage, artifacts=(film(duration_s=delivered),)) == expected


@pytest.mark.parametrize(
    ("asked", "reported", "size", "expected"),
    [
        ("1080p", "1080p", (1920, 1080), ""),
        ("1080p", "", (1280, 720), "1080p was asked and 1280x720 was served"),
        ("1080p", "720p", (0, 0), "1080p was asked and the provider reports 720p"),
        ("720p", "", (1470, 630), ""),
        ("720p", "", (834, 1112), ""),
        ("480p", "", (864, 496), ""),
        ("4k", "", (2560, 1440), "4k was asked and 2560x1440 was served"),
        ("auto", "480p", (100, 100), ""),
        ("sharp", "480p", (100, 100), ""),
    ],
)
def test_pixels_drift(asked: str, reported: str, size: tuple[int, int], expected: str) -> None:
    """OPS-6: 1080p asked and 720p served is told, by the report or by the file; ratios of one class are not."""
    said = {"resolution": reported} if reported else {}
    assert words(attempt(resolution=asked), output=said, artifacts=(film(*size),)) == expected


def test_pictures_drift() -> None:
    """OPS-6: fewer pixels than the size asked for, and another number than was reported."""
    small = film(512, 512, media_type="image/png")
    assert words(attempt(size="1024x1024"), artifacts=(small,)) == "1024x1024 was asked and 512x512 was served"
    assert words(attempt(n=2), usage=Usage(images=2), artifacts=(small,)) == "2 images reported and 1 delivered"
    assert words(attempt(n=2), usage=Usage(images=1), artifacts=(small,)) == ""


def test_tolerances_are_settings() -> None:
    """OPS-6: what counts as drift is stated, and an operator's to say."""
    made = attempt(duration_s=5, resolution="1080p")
    delivery = Delivery(cny("10.2"), None, Usage(seconds=Decimal(8)), {}, (film(320, 180),))
    wide = Tolerance(Decimal("0.02"), 3.0, 0.0)
    assert drift_alerts(made, delivery, wide) == ()
    assert len(drift_alerts(made, delivery, Tolerance(Decimal("0.01"), 3.0, 0.0))) == 1
    assert len(drift_alerts(made, delivery, Tolerance(Decimal("0.02"), 2.9, 0.0))) == 1
    assert len(drift_alerts(made, delivery, Tolerance(Decimal("0.02"), 3.0, 0.1))) == 1


@pytest.mark.parametrize(
    ("made", "cost", "known", "expected"),
    [
        (("exact", {}), "12", {}, Measure("cost", "CNY", 10, (12,))),
        (("ceiling", {}), "2", {"settled": "1"}, Measure("cost", "CNY", 1, (2,))),
        (("exact", {"duration_s": 5}), "10", {"seconds": "9"}, Measure("length", "s", 5, (9,))),
        (("exact", {"resolution": "1080p"}), "10", {"said": "720p"}, Measure("size", "pixels", 2073600, (921600,))),
        (("exact", {"resolution": "1080p"}), "10", {"size": (320, 180)}, Measure("size", "pixels", 2073600, (57600,))),
    ],
)
def test_a_drift_tells_what_it_was_compared_with(
    made: tuple[str, dict[str, Any]], cost: str, known: dict[str, Any], expected: Measure
) -> None:
    """SLO-2, OPS-6: the quote, or what usage costs; what was asked: the first that does not fit."""
    kind, given = made
    settled = cny(known["settled"]) if "settled" in known else None
    usage = Usage(seconds=Decimal(known["seconds"])) if "seconds" in known else Usage()
    output = {"resolution": known["said"]} if "said" in known else {}
    files = (film(*known["size"]),) if "size" in known else ()
    (draft,) = drift_alerts(attempt(kind, **given), Delivery(cny(cost), settled, usage, output, files))
    assert draft.measure == expected


def test_facts_of_a_price_hold_no_words_of_the_caller() -> None:
    """ERR-4: materials by their number, text by its length; what the provider chose stands for what was left open."""
    given = {
        "prompt": "secret", "messages": [{"content": "secret"}], "text": "secret", "duration_s": 5,
        "reference_images": [{"url": "https://example.com/secret"}] * 2, "first_frame": {"url": "secret"},
        "ratio": "adaptive", "resolution": "720p",
    }  # fmt: skip
    assert price_facts(given, {"ratio": "1:1", "resolution": "480p", "size": "1x1"}) == {
        "characters": 6, "duration_s": 5, "reference_images": [True, True], "first_frame": True,
        "ratio": "1:1", "resolution": "720p",
    }  # fmt: skip
