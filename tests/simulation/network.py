"""Processes that can be killed, paused and started again, and the wire between them, which loses, delays and repeats.

The wire stands in the place of the socket: requests and answers are bytes, handlers run behind the real interceptors.
A request is carried to a twin of the caller's exchange; the caller's own ends only with what the wire brings back.

Laws of this file:
- what a dead process sent before it died still arrives; what it was asked is answered UNAVAILABLE, later;
- a paused process finds everything that came meanwhile when it wakes, as bytes in a socket's buffer;
- no request of `ONCE` is ever carried twice: gRPC repeats nothing by itself, and retries are off on that way.
"""

import random
from collections import Counter
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any

import grpc

from libs.rpc.loopback import LoopbackChannel, LoopbackRegistry
from libs.rpc.loopback_exchange import Exchange
from libs.rpc.outgoing import OutgoingChannel
from tests.simulation.loop import OWNER, Owner, VirtualLoop

ONCE = frozenset(
    {"/pointsman.provider_adapter.v1.ProviderService/Submit", "/pointsman.provider_adapter.v1.ProviderService/Cancel"}
)
Run = Callable[[Exchange, Any, Any], Any]
Rewrite = Callable[[bytes], bytes]


@dataclass(slots=True)
class Weather:
    """How bad the wire is: shares of calls that meet each fault, and the seconds they last."""

    lost_request: float = 0.0
    lost_answer: float = 0.0
    late: float = 0.0
    doubled: float = 0.0
    silent: float = 0.5
    """Share of the lost ones of which the caller hears nothing until its deadline."""
    longest_delay_s: float = 4.0


CALM = Weather()


class Process(Owner):
    """One operating-system process: it serves services, and calls others by its own channel."""

    def __init__(self, name: str, network: "Network") -> None:
        super().__init__(name)
        self.network = network
        self.registry = LoopbackRegistry()
        self.inbound: dict[Exchange, Exchange | None] = {}
        """Twins at work here -> the caller's exchange, None for a repetition that nobody waits for."""
        self.outbound: dict[Exchange, Process] = {}
        """Own exchanges under way -> who was asked."""
        self.on_death: list[Callable[[], None]] = []

    def soon(self, call: Callable[..., object], *args: Any) -> None:
        """Have it called as part of this process."""
        self.network.loop.call_soon(call, *args, context=self.context.copy())

    def kill(self) -> None:
        """kill -9."""
        self.dead = True
        self.network.bury(self)
        for tell in self.on_death:
            tell()


@dataclass(slots=True)
class Network:
    """All processes and the wire. `rewrites` change the bytes of a request on its way: for planted faults only."""

    loop: VirtualLoop
    rng: random.Random
    weather: Weather = field(default_factory=Weather)
    processes: list[Process] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rewrites: dict[str, Rewrite] = field(default_factory=dict)
    trace: Callable[[str], None] = lambda _: None

    def join(self, process: Process) -> None:
        """A process has come up."""
        self.processes.append(process)

    def bury(self, process: Process) -> None:
        """A process is gone: its callers hear a broken connection, what it asked for is given up."""
        self.processes.remove(process)
        for caller in process.inbound.values():
            if caller is not None:
                self._break(caller, self.rng.uniform(0.0005, 0.05))
        for exchange, callee in process.outbound.items():
            self._give_up(exchange, callee)
        process.inbound.clear()
        process.outbound.clear()

    def carry(self, caller: Process, exchange: Exchange, run: Run, request: Any) -> None:
        """Bring a request to one of those who serve it."""
        delay, weather, path = self.rng.uniform(0.0002, 0.002), self.weather, exchange.path
        if self.rng.random() < weather.lost_request:
            self._note("request lost", path)
            self._lost(exchange)
            return
        if self.rng.random() < weather.late:
            self._note("request late", path)
            delay += self.rng.uniform(0.01, weather.longest_delay_s)
        rewrite = self.rewrites.get(path)
        if rewrite is not None:
            request = rewrite(request)
        callee = self._pick(path)
        if callee is None:
            self._break(exchange, delay)
            return
        caller.outbound[exchange] = callee
        exchange.on_done(lambda: self._ended(caller, exchange))
        self._later(delay, self._arrive, callee, exchange, run, request)
        if path not in ONCE and self.rng.random() < weather.doubled:
            self._note("request doubled", path)
            again = delay + self.rng.uniform(0.0, weather.longest_delay_s)
            self._later(again, self._arrive_again, exchange, run, request)

    def stream(self, caller: Process, exchange: Exchange, run: Run, request: Any) -> None:
        """A stream: both sides share the exchange; a death of the callee ends it."""
        callee = self._pick(exchange.path)
        if callee is None:
            self._break(exchange, 0.001)
            return
        callee.inbound[exchange] = exchange
        exchange.on_done(lambda: callee.inbound.pop(exchange, None))
        self._handle(callee, exchange, run, request)

    def _pick(self, path: str) -> Process | None:
        serving = [process for process in self.processes if process.registry.find(path) is not None]
        return self.rng.choice(serving) if serving else None

    def _arrive(self, callee: Process, exchange: Exchange, run: Run, request: Any) -> None:
        if callee.dead:
            self._break(exchange, 0.0005)
        else:
            callee.soon(self._take, callee, exchange, run, request)

    def _arrive_again(self, exchange: Exchange, run: Run, request: Any) -> None:
        callee = self._pick(exchange.path)
        if callee is not None:
            callee.soon(self._take, callee, exchange, run, request, False)

    def _take(self, callee: Process, exchange: Exchange, run: Run, request: Any, awaited: bool = True) -> None:
        """In the callee: serve a twin of the exchange, and answer when it is done."""
        left = 5.0 if not awaited else exchange.time_remaining()
        if awaited and exchange.done:
            return  # given up before it came: the connection says so first
        twin = Exchange(exchange.path, left, exchange.metadata, set(), exchange.limit, exchange.answer_limit)
        callee.inbound[twin] = exchange if awaited else None
        twin.on_done(lambda: self._answer(callee, twin))
        self._handle(callee, twin, run, request)

    def _handle(self, callee: Process, exchange: Exchange, run: Run, request: Any) -> None:
        found = callee.registry.find(exchange.path)
        if exchange.done:
            return
        if found is None:
            exchange.finish(*callee.registry.refusal(exchange.path))
            return
        handler, exchange.running = found
        exchange.running.add(exchange)
        context = Context()
        context.run(OWNER.set, callee)
        exchange.task = self.loop.create_task(run(exchange, handler, request), context=context)

    def _answer(self, callee: Process, twin: Exchange) -> None:
        caller = callee.inbound.pop(twin, None)
        if caller is None or caller.done:
            return
        delay = self.rng.uniform(0.0002, 0.002)
        if self.rng.random() < self.weather.lost_answer:
            self._note("answer lost", twin.path)
            self._lost(caller)
            return
        if self.rng.random() < self.weather.late:
            self._note("answer late", twin.path)
            delay += self.rng.uniform(0.01, self.weather.longest_delay_s)
        assert twin.code is not None
        self._later(delay, caller.finish, twin.code, twin.details, twin.trailing_metadata, twin.response)

    def _ended(self, caller: Process, exchange: Exchange) -> None:
        callee = caller.outbound.pop(exchange, None)
        if callee is not None:
            self._give_up(exchange, callee)

    def _give_up(self, exchange: Exchange, callee: Process) -> None:
        """Tell the callee that nobody waits any more, behind whatever else is on the wire."""
        twins = [twin for twin, caller in callee.inbound.items() if caller is exchange and not twin.done]
        for twin in twins:
            callee.inbound[twin] = None
            self._later(0.001, callee.soon, twin.give_up, grpc.StatusCode.CANCELLED, "the caller is gone")

    def _lost(self, exchange: Exchange) -> None:
        if self.rng.random() >= self.weather.silent:
            self._break(exchange, self.rng.uniform(0.001, 0.5))

    def _break(self, exchange: Exchange, delay: float) -> None:
        self._later(delay, exchange.finish, grpc.StatusCode.UNAVAILABLE, "the connection broke")

    def _later(self, delay: float, call: Callable[..., object], *args: Any) -> None:
        """The wire belongs to nobody: what is on it outlives who sent it."""
        self.loop.call_later(delay, call, *args, context=Context())

    def _note(self, what: str, path: str) -> None:
        self.counts[what] += 1
        self.trace(f"{what}: {path.rpartition('/')[2]}")


class WiredChannel(LoopbackChannel):
    """The channel of one process to all others."""

    def __init__(self, process: Process) -> None:
        super().__init__(LoopbackRegistry())
        self._process = process

    def serve(self, exchange: Exchange, run: Run, request: Any) -> None:
        """Put the request on the wire."""
        if exchange.done:
            return
        if exchange.requests is None and exchange.responses is None:
            self._process.network.carry(self._process, exchange, run, request)
        else:
            self._process.network.stream(self._process, exchange, run, request)


class Doors:
    """What `compose.build` takes as `channels`: every context over the one wire."""

    def __init__(self, process: Process, caller: str) -> None:
        self._channel = OutgoingChannel(WiredChannel(process), caller)

    def to(self, context: str) -> Any:
        """The channel to that context."""
        return self._channel
