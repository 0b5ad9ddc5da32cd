"""What a complete selection costs beside the bare "filter + quote + key + sort", from 10 to 10,000 candidates (PRF-4).

    python -m tests.bench.bench_selection [--seconds 0.5] [--json]

The bare columns are what one would write by hand in this file: no reasons, no guardrails, no tiers, nothing kept. They
are measured with plain floats, with integers (nanos) and with exact decimals rounded to nanos. Ours:

- `quote`: the domain of cost_quote prices the request on every Supply, each under a price rule of its own, as exact
  decimals with their arithmetic in words; the results are turned into what routing reads.
- `select`: SEL-1 to SEL-12 over frozen inputs: every Supply with its fate, reason and figures, the baseline, the
  guardrails, tiers, the order, the explanation in four steps.
- `complete` = `quote` + `select`, timed as one. The bound of the project is on this column and its ratio.
- `written`: the record as it goes into the store: canonical JSON of the frozen inputs and the decision, beside it.
- `first`: the first complete selection after a change of the catalogue, when nothing about it is known yet.

No call of another context, no store and no building of the inputs are in any column. Every repetition has another
request and other views of health and capacity, all of them objects of their own, as if read anew.
"""

import argparse
import gc
import itertools
import json
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from functools import partial
from typing import Any, NamedTuple

from libs.kernel.money import NANO, Money
from services.cost_quote.domain.parsing import parse_rule
from services.cost_quote.domain.pricing import Unpriced
from services.cost_quote.domain.quoting import Candidate, PriceBook, Quote, quote_candidates
from services.cost_quote.domain.rules import BillingMode
from services.routing.domain.candidates import inputs_to_quote
from services.routing.domain.catalog import Admin, Binding, Channel, Kind, Limits, Model, Policy, Price, Supply, Tier
from services.routing.domain.decision import CapacityView, Decision, HealthView, Inputs, QuoteView
from services.routing.domain.request import Request
from services.routing.domain.selection import select
from services.routing.domain.selection_record import record, replays

SIZES = (10, 100, 1_000, 10_000)
NOW = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)
WORLDS = 8
"""Requests and views that repetitions take turns with."""
SHAPES: Sequence[Mapping[str, Any]] = (
    {"inputs": {"reference_images": 9, "reference_videos": 3}, "duration_s": {"min": 2, "max": 15}},
    {"inputs": {"reference_images": 9}, "resolutions": ["720p", "1080p"], "duration_s": {"min": 4, "max": 12}},
    {"inputs": {"reference_images": 4}, "ratios": ["16:9", "9:16"], "features": ["seed", "first_frame"]},
    {"inputs": {"reference_images": 1}, "duration_s": {"max": 20}},
)


class BareSupply(NamedTuple):
    """What the bare columns know of a Supply."""

    up: bool
    free: int
    images: int
    longest: float
    health: int
    rate: float
    price: Any
    id: str


class World(NamedTuple):
    """One request with the views of its moment."""

    inputs: Inputs
    asked: Mapping[str, Any]
    bare: Sequence[BareSupply]


@dataclass(frozen=True, slots=True)
class Market:
    """Candidates of one model, their prices, and the worlds that repetitions take turns with."""

    book: PriceBook
    candidates: Sequence[Candidate]
    worlds: Sequence[World]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, in microseconds."""

    candidates: int
    bare_us: float
    bare_integers_us: float
    bare_decimals_us: float
    quote_us: float
    select_us: float
    complete_us: float
    written_us: float
    first_us: float
    ranked: int

    @property
    def ratio(self) -> float:
        """Complete against bare floats."""
        return self.complete_us / self.bare_us


def supplies_of(count: int, dice: random.Random) -> list[Supply]:
    """`count` Supplies, five to a Channel, a few of them out of use."""
    return [
        Supply(
            id=f"channel-{number // 5:04}/model-{number:05}",
            revision=1,
            channel=f"channel-{number // 5:04}",
            upstream_model="m",
            kind=Kind.VIDEO,
            capabilities=SHAPES[number % len(SHAPES)],
            limits=Limits(8, 600, 0),
            prices=(f"price-{number:05}",),
            charges_on_failure=number % 4 == 0,
            admin=Admin.DRAINING if dice.random() < 0.03 else Admin.ENABLED,
        )
        for number in range(count)
    ]


def health(dice: random.Random) -> HealthView:
    """Mostly well, always with statistics."""
    state = dice.choices(["healthy", "degraded", "circuit_open"], [88, 8, 4])[0]
    rate = round(dice.uniform(0.85, 0.999), 4)
    until = NOW + timedelta(seconds=dice.randint(1, 60)) if state == "circuit_open" else None
    return HealthView(state, 3, dice.randint(1, 999), 0 if until else None, rate, rate - 0.03, 400, until)


def capacity(dice: random.Random) -> CapacityView:
    """One in twenty is full."""
    used = 8 if dice.random() < 0.05 else dice.randint(0, 7)
    return CapacityView(8, used, used, 600, dice.randint(0, 500))


def market(count: int, seed: int = 1) -> Market:
    """Nine of ten bindings exact, the others fallback; every Supply has a price rule of its own."""
    dice = random.Random(seed)
    supplies = {supply.id: supply for supply in supplies_of(count, dice)}
    channels = {s.channel: Channel(s.channel, 1, "ark", "http://127.0.0.1:9", "env:KEY") for s in supplies.values()}
    usual = {"version": 1, "currency": "CNY", "billing_mode": "per_second"}
    names = [name for supply in supplies.values() for name in supply.prices]
    specs = [{**usual, "id": name, "rate": f"{dice.uniform(0.7, 1.3):.3f}"} for name in names]
    rules = {rule.id: rule for rule in map(parse_rule, specs)}
    tiers = [Tier.FALLBACK if number % 10 == 9 else Tier.EXACT for number in range(count)]
    model = Model(
        "clip", 1, Kind.VIDEO, "stable", "full", {"duration_s": {"min": 1, "max": 60}}, True, True,
        tuple(Binding(name, tier) for name, tier in zip(supplies, tiers, strict=True)),
    )  # fmt: skip
    common = Inputs(
        request=Request("default", "clip", {}),
        model=model,
        policy=Policy("stable", 1),
        currency="CNY",
        supplies=supplies,
        channels=channels,
        rules={},
        supply_health={},
        channel_health={},
        supply_capacity={},
        channel_capacity={},
        global_capacity=CapacityView(),
        quotes={},
        spent=Money.zero("CNY"),
        now=NOW,
        prices={spec["id"]: Price(spec["id"], 1, 1, "CNY", "per_second", spec) for spec in specs},
    )
    book = PriceBook(1, "CNY", {}, rules)
    candidates = [Candidate(supply.id, supply.prices) for supply in supplies.values()]
    return Market(book, candidates, [world(common, book, number, dice) for number in range(WORLDS)])


def world(common: Inputs, book: PriceBook, number: int, dice: random.Random) -> World:
    """A request of its own, and views that are objects of their own."""
    given = {
        "prompt": f"a lighthouse in fog, take {number}",
        "duration_s": 4 + number,
        "ratio": "16:9",
        "reference_images": [{"url": f"https://materials.example/{number}.png"}],
    }
    inputs = replace(
        common,
        request=Request("default", "clip", given),
        supply_health={name: health(dice) for name in common.supplies},
        channel_health={name: HealthView(revision=number) for name in common.channels},
        supply_capacity={name: capacity(dice) for name in common.supplies},
        channel_capacity={name: CapacityView(100, dice.randint(0, 60), 0) for name in common.channels},
    )
    asked = inputs_to_quote(inputs.model, {}, given)[next(iter(inputs.supplies))]
    return World(inputs, asked, [bare_supply(inputs, book, name) for name in inputs.supplies])


def bare_supply(inputs: Inputs, book: PriceBook, name: str) -> BareSupply:
    """The same facts as few plain values."""
    supply, view, use = inputs.supplies[name], inputs.supply_health[name], inputs.supply_capacity[name]
    return BareSupply(
        up=supply.admin is Admin.ENABLED and view.state != "circuit_open",
        free=use.configured - use.in_use,
        images=supply.capabilities["inputs"]["reference_images"],
        longest=supply.capabilities.get("duration_s", {}).get("max", 60),
        health=("healthy", "degraded", "circuit_open").index(view.state),
        rate=view.success_rate_low or 0.0,
        price=book.rules[supply.prices[0]].rate,
        id=name,
    )


def bare(supplies: Iterable[BareSupply], seconds: Any, images: int) -> list[tuple[int, float, Any, int, str]]:
    """Filter, quote, key, sort. In whatever numbers the prices and seconds are."""
    return sorted(
        (ill, -rate, price * seconds, -free, name)
        for up, free, most, longest, ill, rate, price, name in supplies
        if up and free > 0 and images <= most and seconds <= longest
    )


def bare_decimals(supplies: Iterable[BareSupply], seconds: Decimal, images: int) -> list[Any]:
    """The same with every quote rounded to nanos."""
    return sorted(
        (ill, -rate, (price * seconds).quantize(NANO, ROUND_HALF_EVEN), -free, name)
        for up, free, most, longest, ill, rate, price, name in supplies
        if up and free > 0 and images <= most and seconds <= longest
    )


def quote(stall: Market, asked: Mapping[str, Any]) -> dict[str, QuoteView]:
    """Prices of the domain of cost_quote, as routing reads them."""
    quotes, _ = quote_candidates(stall.book, "video", BillingMode.PER_SECOND, asked, stall.candidates)
    return {candidate.supply: view(found) for candidate, found in zip(stall.candidates, quotes, strict=True)}


def view(found: Quote | Unpriced) -> QuoteView:
    """What the door between the two contexts makes of a quote."""
    if isinstance(found, Unpriced):
        return QuoteView(unpriced_reason=found.reason)
    value, _, rule, _, _, kind, explanation = found
    return tuple.__new__(QuoteView, (value, "", rule.id, rule.version, "1", kind, explanation))


def decide(inputs: Inputs, quotes: Mapping[str, QuoteView]) -> Decision:
    """The decision over inputs with these quotes."""
    return select(replace(inputs, quotes=quotes))


def step_us(seconds: float, steps: Sequence[Callable[[], object]]) -> float:
    """The time of a step in microseconds: the fastest tenth of many repetitions, since what a busy machine adds to the
    others is not ours. Several at a time where one is too short for the clock."""
    turns = itertools.cycle(steps)
    at_once = 1
    while True:
        begun = time.thread_time()
        for _ in range(at_once):
            next(turns)()
        if time.thread_time() - begun > 0.0005 or at_once >= 1024:
            break
        at_once *= 2
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begun = time.thread_time()
        for _ in range(at_once):
            next(turns)()
        times.append((time.thread_time() - begun) / at_once)
    return sorted(times)[len(times) // 10] * 1e6


def measure(count: int, seconds: float) -> Row:
    """One line, with the collector at rest: what is made here has no cycles."""
    stall = market(count)
    numbers: list[tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any, Any, int], object]]] = [
        (float, float, bare),
        (lambda rate: int(rate * 10**9), int, bare),
        (lambda rate: rate, Decimal, bare_decimals),
    ]
    bares = []
    for price, duration, sort in numbers:
        rows = [[row._replace(price=price(row.price)) for row in item.bare] for item in stall.worlds]
        seconds_asked = [duration(item.inputs.request.input["duration_s"]) for item in stall.worlds]
        bares.append(step_us(seconds, [partial(sort, r, s, 1) for r, s in zip(rows, seconds_asked, strict=True)]))
    quoted = [replace(item.inputs, quotes=quote(stall, item.asked)) for item in stall.worlds]
    decided = [(inputs, select(inputs)) for inputs in quoted]
    assert all(replays(record(*pair)) for pair in decided[:1])
    return Row(
        count,
        *bares,
        quote_us=step_us(seconds, [lambda w=w: quote(stall, w.asked) for w in stall.worlds]),
        select_us=step_us(seconds, [lambda i=i: select(i) for i in quoted]),
        complete_us=step_us(seconds, [lambda w=w: decide(w.inputs, quote(stall, w.asked)) for w in stall.worlds]),
        written_us=step_us(seconds, [lambda p=p: record(*p) for p in decided]),
        first_us=statistics.median(first(count, seed) for seed in range(2, 7)),
        ranked=sum(1 for fate in decided[0][1].fates if fate.rank),
    )  # fmt: skip


def first(count: int, seed: int) -> float:
    """The first complete selection over a catalogue that was never seen, in microseconds."""
    stall = market(count, seed)
    begun = time.thread_time()
    decide(stall.worlds[0].inputs, quote(stall, stall.worlds[0].asked))
    return (time.thread_time() - begun) * 1e6


def table(rows: Sequence[Row]) -> str:
    """The table, and what it grew by."""
    lines = [
        "| candidates | bare floats | bare integers | bare decimals | quote | select | complete | complete / bare "
        "| candidates a second | written | first | ranked |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        bares = (row.bare_us, row.bare_integers_us, row.bare_decimals_us)
        figures = [*bares, row.quote_us, row.select_us, row.complete_us, row.ratio]
        figures += [row.candidates / row.complete_us * 1e6, row.written_us, row.first_us, row.ranked]
        lines.append(f"| {row.candidates:,} | " + " | ".join(f"{value:,.1f}" for value in figures) + " |")
    least, most = rows[0], rows[-1]
    lines.append(
        f"\nmicroseconds of processor time, the fastest tenth. From {least.candidates:,} to {most.candidates:,}: "
        f"bare x {most.bare_us / least.bare_us:,.0f}, complete x {most.complete_us / least.complete_us:,.0f}."
    )
    return "\n".join(lines)


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="for each figure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    gc.collect()
    gc.disable()
    rows = [measure(count, options.seconds) for count in SIZES]
    print(json.dumps([asdict(row) | {"ratio": row.ratio} for row in rows]) if options.json else table(rows))


if __name__ == "__main__":
    main()
