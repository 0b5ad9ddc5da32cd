"""All contexts as processes over one wire: built as in production, on stores that outlive them."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from libs.host.world import RisingUlids
from libs.kernel.world import World
from libs.rpc.server import RpcServer
from services.capacity import compose as capacity
from services.capacity.settings import Settings as CapacitySettings
from services.cost_quote import compose as cost_quote
from services.health import compose as health
from services.health.settings import Settings as HealthSettings
from services.provider_adapter import compose as provider_adapter
from services.routing import compose as routing
from services.runs import compose as runs
from tests.simulation.databases import Database, Served, Stores
from tests.simulation.eyes import Eyes
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Doors, Network, Process
from tests.simulation.providers import EPOCH_S, Outside
from tests.simulation.shape import Shape

EPOCH = datetime.fromtimestamp(EPOCH_S, UTC)


class VirtualClock:
    """kernel.Clock on the loop's time. `skew_s` is how far a machine's wall clock is off; it may be stepped."""

    def __init__(self, loop: VirtualLoop, skew_s: float = 0.0) -> None:
        self._loop = loop
        self.skew_s = skew_s

    def now(self) -> datetime:
        """The wall time of that machine."""
        return EPOCH + timedelta(seconds=self._loop.time() + self.skew_s)

    def monotonic(self) -> float:
        """The loop's seconds."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def world_of(loop: VirtualLoop, rng: random.Random, skew_s: float = 0.0) -> World:
    """The World of one process."""
    clock = VirtualClock(loop, skew_s)
    ids = RisingUlids(lambda: int(clock.now().timestamp() * 1000), rng.randbytes)
    return World(clock, ids, rng)


@dataclass(slots=True)
class Seat:
    """A place for a process: what runs there is replaced, the place stays."""

    name: str
    build: Callable[[Any, World], Any]
    process: Process | None = None
    clock: VirtualClock | None = None
    """Of the process."""
    starts: int = 0
    context: Any = None
    server: Any = None


class Cluster:
    """Every seat, with a process in it or without."""

    def __init__(
        self,
        loop: VirtualLoop,
        network: Network,
        stores: Stores,
        database: Database,
        outside: Outside,
        shape: Shape,
        seed: str,
    ) -> None:
        self._loop = loop
        self._network = network
        self._seed = seed
        self.stepped_s = 0.0
        """By how much the time that all processes go by has been stepped."""
        served = partial(Served, database=database)
        kept = routing.Stores(served(stores.tasks), served(stores.catalog))
        url, settings, adapter = "memory:", shape.routing(), shape.adapter()
        builders: dict[str, Callable[[Any, World], Any]] = {
            "capacity": lambda doors, world: capacity.assemble(served(stores.capacity), CapacitySettings(url), world),
            "health": lambda doors, world: health.assemble(served(stores.health), HealthSettings(url), world),
            "cost_quote": lambda doors, world: cost_quote.assemble(
                served(stores.books), world.clock, served(stores.budgets)
            ),
            "provider_adapter": lambda doors, world: provider_adapter.assemble(
                outside, outside, outside, adapter, world
            ),
            "routing": lambda doors, world: routing.assemble(kept, settings, doors, world),
            "runs": lambda doors, world: runs.assemble(
                served(stores.runs), served(stores.runs), Eyes(), shape.runs(), doors, world
            ),
        }
        self._builders = builders
        self.seats: list[Seat] = []

    def place(self, replicas: dict[str, int]) -> None:
        """Make seats and start them all."""
        for name, build in self._builders.items():
            for number in range(1, replicas.get(name, 1) + 1):
                self.seats.append(Seat(f"{name}-{number}", build))
        for seat in self.seats:
            self.start(seat)

    def start(self, seat: Seat, skew_s: float = 0.0) -> None:
        """A new process takes the seat."""
        seat.starts += 1
        process = Process(seat.name, self._network)
        seat.process = process
        self._network.join(process)
        rng = random.Random(f"{self._seed}:{seat.name}:{seat.starts}")
        process.soon(lambda: self._loop.create_task(self._main(seat, process, rng, skew_s)))

    async def _main(self, seat: Seat, process: Process, rng: random.Random, skew_s: float) -> None:
        world = world_of(self._loop, rng, skew_s + self.stepped_s)
        seat.clock = world.clock
        context = seat.build(Doors(process, seat.name.partition("-")[0]), world)
        server = RpcServer(registry=process.registry, new_reference=lambda: rng.randbytes(8).hex())
        for _, add in context.registrations:
            server.add(add)
        await server.start()
        await context.start()
        seat.context, seat.server = context, server

    def retire(self, seat: Seat) -> None:
        """SIGTERM: the process drains and leaves; nothing happens if it is not up."""
        process = seat.process
        if process is None or process.dead or seat.context is None:
            return
        context, server = seat.context, seat.server
        seat.context = None

        async def leave() -> None:
            await server.drain()
            await context.stop()
            await server.close()
            process.kill()

        process.soon(lambda: self._loop.create_task(leave()))
