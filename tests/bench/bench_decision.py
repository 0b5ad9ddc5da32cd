"""What a whole decision costs in routing, from the claimed Task to the record: gather, select, key, write (PRF-4).

    python -m tests.bench.bench_decision [--seconds 0.5] [--json]

The store, health and capacity are fakes in memory: their own cost stands in the benches of their own. Prices come from
cost_quote over the loopback, with every message encoded and decoded, from books in memory. `one by one` is a lone Task;
`a turn of 64` is one Task's share where sixty-four are decided together on one look at health and capacity.
"""

import argparse
import asyncio
import gc
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from services.cost_quote.compose import assemble
from services.cost_quote.store.memory import MemoryPriceBooks
from services.routing.app.gather import Gathered, gather, look
from services.routing.domain.catalog import Catalog, Price
from services.routing.domain.decision import Decision, Inputs
from services.routing.domain.rounds import RoundOutcome, make_round, round_key
from services.routing.domain.selection import select
from services.routing.domain.task import Task
from services.routing.peers.quotes import RemoteQuotes
from tests.support.worlds import SteeredClock
from tests.unit.routing.dispatch_fakes import Stage, stage
from tests.unit.routing.dispatch_offers import catalog, supply

SIZES = (1, 3, 12, 100)
TURN = 64


@dataclass
class Row:
    """One line of the table; medians in microseconds of processor time, for one Task."""

    candidates: int
    gather_us: float
    select_us: float
    key_us: float
    write_us: float
    alone_us: float
    in_turn_us: float


def offers(count: int) -> Catalog:
    """So many Supplies, four to a Channel, each with a price of its own."""
    bound = [supply(f"channel{number // 4}/clip{number}", prices=(f"price-{number}",)) for number in range(count)]
    prices = {item.prices[0]: Price(item.prices[0], 1, 1, "CNY", "per_second") for item in bound}
    return catalog(*bound, prices=prices)


async def with_prices(play: Stage, known: Catalog, channels: Channels, books: MemoryPriceBooks) -> Stage:
    """The same process, its prices those of cost_quote."""
    specs: list[Any] = [
        {"id": name, "version": 1, "currency": "CNY", "billing_mode": "per_second", "rate": "1.25"}
        for name in known.prices
    ]
    await books.add(known.revision, "CNY", {}, specs)
    quotes: Any = RemoteQuotes(channels.to("cost_quote"), 5.0)
    return replace(play, desk=replace(play.desk, quotes=quotes))


def median_us(times: Sequence[float]) -> float:
    """In microseconds."""
    return statistics.median(times) * 1e6


def repeat(seconds: float, step: Callable[[], object]) -> float:
    """The median of a step that waits for nobody."""
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begun = time.thread_time()
        step()
        times.append(time.thread_time() - begun)
    return median_us(times)


async def decide(play: Stage, task: Task) -> tuple[Inputs, Decision]:
    """One Task, as `turn` does it but for the reservation, and what `dispatch_task` writes of it."""
    views = await look(play.desk)
    return decided(task, await gather(play.desk, task, views))


def decided(task: Task, found: Gathered) -> tuple[Inputs, Decision]:
    """The decision over what was gathered, with its key and its record."""
    inputs = found.inputs
    assert inputs is not None  # the model is on offer
    decision = select(inputs)
    round_key(decision)
    make_round(task.id, 1, inputs, decision, RoundOutcome.RESERVED)
    return inputs, decision


async def turn(play: Stage, tasks: Sequence[Task]) -> None:
    """Many together, on one look."""
    views = await look(play.desk)
    found = await asyncio.gather(*(gather(play.desk, task, views) for task in tasks))
    for task, item in zip(tasks, found, strict=True):
        inputs = item.inputs
        assert inputs is not None  # the model is on offer
        decided(task, replace(item, inputs=views.seen_by(inputs)))


async def measure(count: int, seconds: float) -> Row:
    """One line."""
    known, books, registry = offers(count), MemoryPriceBooks(), LoopbackRegistry()
    server = RpcServer(registry=registry)
    for _, add in assemble(books, SteeredClock()).registrations:
        server.add(add)
    await server.start()
    async with Channels(registry=registry, caller="routing") as channels:
        play = await with_prices(stage(offers=known), known, channels, books)
        tasks = [await play.submit(f"t{number}") for number in range(TURN)]
        inputs, decision = await decide(play, tasks[0])
        gathering, alone, shared = [], [], []
        views = await look(play.desk)
        end = time.perf_counter() + 3 * seconds
        while time.perf_counter() < end or len(alone) < 5:
            begun = time.thread_time()
            await gather(play.desk, tasks[0], views)
            gathering.append(time.thread_time() - begun)
            begun = time.thread_time()
            await decide(play, tasks[0])
            alone.append(time.thread_time() - begun)
            begun = time.thread_time()
            await turn(play, tasks)
            shared.append((time.thread_time() - begun) / TURN)
    await server.close()
    return Row(
        count,
        gather_us=median_us(gathering),
        select_us=repeat(seconds, lambda: select(inputs)),
        key_us=repeat(seconds, lambda: round_key(decision)),
        write_us=repeat(seconds, lambda: make_round("t", 1, inputs, decision, RoundOutcome.RESERVED)),
        alone_us=median_us(alone),
        in_turn_us=median_us(shared),
    )


def table(rows: Sequence[Row]) -> str:
    """The table."""
    lines = [
        "| candidates | gather, prices over the loopback | select | key of the round | write the record | one by one "
        "| a turn of 64, each | decisions a second in turns |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        figures = (row.gather_us, row.select_us, row.key_us, row.write_us, row.alone_us, row.in_turn_us)
        told = " | ".join(f"{value:,.0f}" for value in (*figures, 1e6 / row.in_turn_us))
        lines.append(f"| {row.candidates:,} | {told} |")
    return "\n".join([*lines, "\nmicroseconds of processor time of one Task, medians."])


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="for each figure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    gc.collect()
    rows = [asyncio.run(measure(count, options.seconds)) for count in SIZES]
    print(json.dumps([asdict(row) for row in rows]) if options.json else table(rows))


if __name__ == "__main__":
    main()
