"""How well productions go, told in figures."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from google.protobuf.duration_pb2 import Duration

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.telemetry.metrics import Metrics
from pointsman.runs.v1 import runs_service_pb2 as pb
from services.runs.app.measure_levels import Levels, Measure
from services.runs.domain.desks import DeskChanges
from services.runs.domain.service_levels import ALL, Outcome
from services.runs.domain.trends import LAST, worsened
from services.runs.wire.levels import window_from_proto
from tests.support.worlds import START
from tests.unit.runs.fakes import OUT_OF_ORDER, REFUSED
from tests.unit.runs.house import House
from tests.unit.runs.test_gates import FRAME, GATE, house, production

CLIP = {**FRAME, "model": "clip", "input": {"prompt": "a crane", "duration_s": 4}}
DAY = timedelta(hours=24)


def measuring(home: House, metrics: Metrics | None = None) -> Measure:
    """What measures that house."""
    return Measure(home.runs, home.alerts, home.world, metrics or Metrics())


async def levels(home: House) -> Levels:
    """The figures of its last day."""
    return await measuring(home).levels(DAY)


async def test_figures_are_counted_from_events() -> None:
    """SLO-1: success rate, yield, retry rate, cost per usable second and review wait, of all and by model."""
    home = house()
    home.routing.script = {"frame": [OUT_OF_ORDER]}
    tried = await home.carry(await home.produce(production(CLIP)))  # the second attempt makes it
    await home.carry(tried, seconds=60)
    home.routing.script = {"frame": [REFUSED]}
    await home.carry(await home.produce(production(CLIP)))  # a dead letter
    home.routing.script = {}
    asked = await home.carry(await home.produce(production(FRAME, GATE)))
    home.clock.advance(90)
    await home.decide(asked, "approve")
    await home.carry(await home.create())
    told = await levels(home)
    whole, clip = told.figures[ALL], told.figures["clip"]
    assert (whole.runs, whole.nodes, whole.success_rate) == (4, 4, 0.75)
    assert whole.review_wait_s == 90
    assert whole.retry_rate == pytest.approx(1 / 5)
    assert whole.first_pass_yield == pytest.approx(2 / 4)
    assert (clip.nodes, clip.first_pass_yield) == (3, pytest.approx(1 / 3))
    assert clip.cost_per_usable_second == {"CNY": Decimal("0.25")}
    assert told.figures["frame"].first_pass_yield == 1
    assert told.figures["frame"].cost_per_usable_second == {}
    assert (told.rebuilt, told.checked) == (4, 4)


async def test_times_are_told_in_seconds() -> None:
    """SLO-1: queue time is from a node's readiness to its attempt, stale propagation from mark to new result."""
    home = house()
    home.routing.answering = False
    frame = {**FRAME, "id": "frame"}
    clip = {"id": "clip", "kind": "generate", "model": "clip", "input": {"first_frame": "${frame.artifact}"}}
    run = await home.carry(await home.produce(production(frame, clip)))
    home.clock.advance(30)
    home.answer_all(run)
    home.routing.answering = True
    run = await home.carry(run)
    assert (await levels(home)).figures["frame"].queue_time_s == 30
    home.routing.answering = False
    run = await home.redrive(run, "frame", input={"prompt": "a heron"})
    home.answer_all(run)
    run = await home.carry(run)
    home.clock.advance(20)
    home.answer_all(run)
    await home.carry(run)
    assert (await levels(home)).figures["clip"].stale_propagation_s == 20


async def test_nothing_known_is_nothing_told() -> None:
    """SLO-1: a figure without a case is absent and never 0; what people cancel, and what is older, does not count."""
    home = house()
    told = (await levels(home)).figures[ALL]
    assert (told.runs, told.success_rate, told.first_pass_yield, told.review_wait_s) == (0, None, None, None)
    await home.carry(await home.produce(production(FRAME)))
    home.clock.advance(86_401)
    assert (await levels(home)).figures[ALL].runs == 0


async def test_the_page_shows_them() -> None:
    """SLO-1, OPS-5: the figures of the last day are metrics, of all and by model, with the share of sound rebuilds."""
    home, metrics = house(), Metrics()
    await home.carry(await home.produce(production(CLIP)))
    await measuring(home, metrics).watch()
    page = metrics.page().decode()
    assert 'pointsman_slo_ratio{figure="success_rate",model=""} 1.0' in page
    assert 'pointsman_slo_ratio{figure="first_pass_yield",model="clip"} 1.0' in page
    assert 'pointsman_slo_ratio{figure="rebuild_success",model=""} 1.0' in page
    assert 'pointsman_slo_seconds{figure="queue_time",model="clip"} 0.0' in page
    assert 'pointsman_slo_cost_per_usable_second{currency="CNY",model="clip"} 0.25' in page
    assert home.alerts.told == []


def passes(*firsts: bool) -> list[Outcome]:
    """Outcomes of one model, a minute apart."""
    return [Outcome("clip", START + timedelta(minutes=n), first) for n, first in enumerate(firsts)]


def waits(*queues: float | None) -> list[Outcome]:
    """Outcomes of one model that waited so long, and came out right."""
    return [Outcome("clip", START + timedelta(minutes=n), True, queue_s) for n, queue_s in enumerate(queues)]


def priced(*costs: str, currency: str = "CNY") -> list[Outcome]:
    """Outcomes of one model, each of that cost for a second."""
    return [
        Outcome("clip", START + timedelta(minutes=n), True, None, Money(currency, Decimal(cost)))
        for n, cost in enumerate(costs)
    ]


def bad(outcomes: list[Outcome]) -> dict[str, tuple[float, float]]:
    """Figure -> (of the last ones, of those before)."""
    return {
        change.measure.figure: (pytest.approx(change.measure.value), pytest.approx(change.measure.baseline))
        for change in worsened(outcomes)
    }


def test_a_fall_of_the_yield_is_seen() -> None:
    """SLO-1: the last ones far below those before are a fall; few cases, or a model that never was better, are none."""
    right, wrong = [True] * LAST, [False] * LAST
    assert bad(passes(*right, *wrong)) == {"first_pass_yield": (0, 1)}
    assert bad(passes(*right[1:], *wrong)) == {}
    assert bad(passes(*wrong, *wrong)) == {}
    assert bad(passes(*right, *wrong[10:], *right[10:])) == {}
    assert bad(passes(*right, *wrong[9:], *right[11:])) == {"first_pass_yield": (0.45, 1)}


def test_a_longer_wait_and_a_dearer_second_are_seen() -> None:
    """SLO-2: four times as long and a minute longer, half as dear again; in one currency, and not in the
    background."""
    assert bad(waits(*[20.0] * LAST, *[81.0] * LAST)) == {"queue_time": (81, 20)}
    assert bad(waits(*[20.0] * LAST, *[80.0] * LAST)) == {}
    assert bad(waits(*[1.0] * LAST, *[60.0] * LAST)) == {}
    assert bad(waits(*[20.0] * LAST, *[None] * LAST, *[None] * LAST)) == {}
    assert bad(priced(*["0.10"] * LAST, *["0.16"] * LAST)) == {"cost_per_usable_second": (0.16, 0.1)}
    assert bad(priced(*["0.10"] * LAST, *["0.15"] * LAST)) == {}
    assert bad([*priced(*["0.10"] * LAST), *priced(*["9"] * LAST, currency="USD")]) == {}


def test_what_has_gone_bad_tells_its_way() -> None:
    """SLO-2: the baseline, and means of as many outcomes on the way from it to the newest one, oldest first."""
    (change,) = worsened(passes(*[True] * 30, *[True, False] * 5, *[False] * 10))
    assert (change.model, change.measure.unit) == ("clip", "ratio")
    assert change.measure.values == pytest.approx([1, 1, 0.75, 0.25])
    assert change.measure.baseline == pytest.approx(1)


async def test_nobody_minds_how_long_the_background_waits() -> None:
    """SLO-2: nodes of value class `background`, and orders of low priority, count for no queue time that is told."""
    home = house()
    home.routing.answering = False
    for node in (CLIP, {**CLIP, "value_class": "background"}, {**CLIP, "options": {"priority": "low"}}):
        run = await home.carry(await home.produce(production(node)))
        home.clock.advance(30)
        home.answer_all(run)
        await home.carry(run)
    told = await levels(home)
    assert [outcome.queue_s for outcome in told.outcomes] == [30, None, None]
    assert told.figures["clip"].queue_time_s == 30


async def test_a_fall_of_the_yield_trips_like_an_outage() -> None:
    """SLO-1, SLO-2, OPS-6: every call succeeds in the end, and still operators are told that the production is down,
    with what it was and how it went."""
    home = house()
    for _ in range(LAST):
        await home.carry(await home.produce(production(CLIP)))
    await measuring(home).watch()
    assert home.alerts.told == []
    for _ in range(LAST):
        home.routing.script = {"frame": [OUT_OF_ORDER]}
        run = await home.carry(await home.produce(production(CLIP)))
        await home.carry(run, seconds=60)
    await measuring(home).watch()
    assert home.alerts.told == [("exact_supply_unavailable", "clip")]
    (alert,), (link,) = home.alerts.alerts, home.alerts.links
    assert alert.message == "of clip 0% came out right at the first attempt lately, where it was 100%"
    assert alert.measure is not None
    assert (alert.measure.figure, alert.measure.baseline, alert.measure.value) == ("first_pass_yield", 1, 0)
    assert link == "/v1/operator/slo"


async def test_a_run_that_is_not_what_its_events_tell_is_told() -> None:
    """SLO-1, EVENT-3: the share of Runs that are rebuilt as they stand; one that is not breaks an invariant."""
    home = house()
    run = await home.carry(await home.produce(production(FRAME)))
    await home.runs.save(replace(run, labels={"forged": "yes"}), [], home.clock.now(), DeskChanges())  # no event tells
    told = await levels(home)
    assert (told.rebuilt, told.checked) == (0, 1)
    await measuring(home).watch()
    assert home.alerts.told == [("invariant_violated", "runs")]


@pytest.mark.parametrize("seconds", [0, -1, 90 * 86_400 + 1, 2**62])
def test_a_window_that_cannot_be_is_refused(seconds: int) -> None:
    """SLO-1: figures go back 90 days at most, however they are asked for; without a word, one day."""
    with pytest.raises(Fault) as caught:
        window_from_proto(pb.GetServiceLevelsRequest(window=Duration(seconds=seconds)))
    assert caught.value.errors[0].pointer == "/window"
    assert window_from_proto(pb.GetServiceLevelsRequest()) == DAY
