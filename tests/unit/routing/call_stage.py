"""A stage for synchronous calls: peers that a test scripts, under a steered clock, and RoutingService over loopback."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.store.gathering import Gathering
from pointsman.routing.v1 import call_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub, add_RoutingServiceServicer_to_server
from services.routing.app.calls.afterwards import Afterwards
from services.routing.app.calls.call_desk import CallDesk, Memory
from services.routing.app.calls.call_holds import CallHolds
from services.routing.app.calls.call_turn import seat_all
from services.routing.app.calls.looking import Looking
from services.routing.app.calls.settle_call import price_all
from services.routing.app.calls.watchdog import Watch
from services.routing.app.desk import Errands
from services.routing.domain.calls.token_rates import TokenRates
from services.routing.domain.catalog import (
    Binding,
    Catalog,
    Channel,
    Kind,
    Limits,
    Model,
    Policy,
    Price,
    Supply,
    Tier,
    Timeouts,
)
from services.routing.domain.decision import QuoteView
from services.routing.domain.request_facts import DEFAULT_BILLING_MODES
from services.routing.domain.usage import Usage
from services.routing.ports import Priced
from services.routing.ports.calls import Answered, Outgoing, Report
from services.routing.ports.prices import UsageItem, UsagePrice
from services.routing.servicer.routing import RoutingServicer
from services.routing.settings import Settings
from services.routing.store.calls_memory import MemoryCalls
from tests.support.worlds import SteeredClock, steered_world
from tests.unit.routing.dispatch_fakes import FakeCapacity, Stage, stage
from tests.unit.routing.dispatch_health import FakeHealth
from tests.unit.routing.dispatch_offers import FakeCatalog
from tests.unit.routing.paid import PaidCalls

MODEL = "talk"
HELLO = {"messages": [{"role": "user", "content": "Good morning."}], "max_tokens": 100}
ANSWER = {"choices": [{"message": {"role": "assistant", "content": "Good morning to you."}, "finish_reason": "stop"}]}
USAGE = Usage(input_tokens=10, output_tokens=6)
REPORT = Report(USAGE, "stop", "req-1")
MOST_S = 1000.0


def chat_supply(name: str, **changes: Any) -> Supply:
    """A Supply `x/talk` of Channel `x`."""
    channel = name.partition("/")[0]
    made = Supply(name, 1, channel, "talk-1", Kind.CHAT, limits=Limits(concurrency=5), prices=("tokens",))
    return replace(made, **changes)


def chat_catalog(
    *supplies: Supply, sync: Mapping[str, Any] | None = None, timeouts: Timeouts | None = None, **model: Any
) -> Catalog:
    """A catalogue with one model `talk`, bound exactly to `supplies`."""
    bound = supplies or (chat_supply("a/talk"), chat_supply("b/talk"))
    kind = bound[0].kind
    channels = {
        s.channel: Channel(s.channel, 1, "openai", "http://127.0.0.1:1", "env:KEY", timeouts=timeouts or Timeouts())
        for s in bound
    }
    policy = Policy(id="quick", revision=1, sync=dict(sync or {}))
    made = Model(MODEL, 1, kind, "quick", published=True, bindings=tuple(Binding(s.id, Tier.EXACT) for s in bound))
    return Catalog(
        revision=1,
        channels=channels,
        supplies={s.id: s for s in bound},
        prices={"tokens": Price("tokens", 1, 1, "CNY", DEFAULT_BILLING_MODES[kind], {})},
        policies={"quick": policy},
        models={MODEL: replace(made, **model)},
    )


@dataclass
class FakeCallQuotes:
    """`CallQuotes`: an amount for each call, a hundredth for each token used."""

    amount: Decimal = Decimal(1)
    questions: list[int] = field(default_factory=list)
    """How many requests each question asked about."""
    priced: list[UsageItem] = field(default_factory=list)
    away: Fault | None = None
    faults: list[Fault] = field(default_factory=list)
    pricing_away: Exception | None = None
    rates: dict[tuple[str, int], TokenRates] = field(default_factory=dict)
    """What rules charge for tokens; none = every price is asked for."""

    async def quote_each(
        self, kind: str, billing_mode: str, asks: Sequence[Sequence[Priced]], revision: int
    ) -> tuple[Sequence[Mapping[str, QuoteView]], Mapping[tuple[str, int], TokenRates]]:
        """One each."""
        if self.away or self.faults:
            raise self.away or self.faults.pop()
        self.questions.append(len(asks))
        quotes = [
            {item.supply.id: QuoteView(self.amount, rule_id="tokens", rule_version=1, kind="ceiling") for item in ask}
            for ask in asks
        ]
        return quotes, self.rates

    async def price_usage(self, items: Sequence[UsageItem]) -> Mapping[str, UsagePrice]:
        """A hundredth for each token."""
        if self.pricing_away:
            raise self.pricing_away
        self.priced += items
        return {item.key: UsagePrice(Money("CNY", Decimal(item.usage.tokens or 0) / 100)) for item in items}


@dataclass(frozen=True)
class Then:
    """What a provider call meets: it takes `after_s`, then fails or answers. Of a stream `chunks` come before, each
    `apart_s` after the one before it."""

    fault: Fault | None = None
    after_s: float = 0.0
    output: Mapping[str, Any] = field(default_factory=lambda: ANSWER)
    report: Report = REPORT
    chunks: tuple[Mapping[str, Any], ...] = ()
    apart_s: float = 0.0
    together: bool = False
    """All `chunks` come at once."""
    hangs: bool = False
    artifacts: tuple[Any, ...] = ()


@dataclass
class ScriptedProvider:
    """`CallProvider` with a ledger of what it was sent."""

    clock: SteeredClock
    scripts: dict[str, list[Then]] = field(default_factory=dict)
    """By Supply id, what its next calls meet; after the last one, the last one again."""
    calls: list[tuple[str, Outgoing]] = field(default_factory=list)
    """(Supply id, what was sent), whatever became of it."""
    answer: Callable[[Outgoing], Mapping[str, Any]] | None = None
    """What an answer says, where it depends on what was sent."""
    left: list[str] = field(default_factory=list)
    """Supplies whose stream was ended by us."""

    def sent(self, supply: str = "") -> int:
        """How many calls reached it."""
        return sum(1 for name, _ in self.calls if not supply or name == supply)

    def _next(self, supply: str) -> Then:
        script = self.scripts.get(supply) or [Then()]
        return script.pop(0) if len(script) > 1 else script[0]

    async def invoke(self, channel: Channel, supply: Supply, outgoing: Outgoing) -> Answered:
        """As scripted."""
        self.calls.append((supply.id, outgoing))
        then = self._next(supply.id)
        if then.after_s:
            await self.clock.sleep(then.after_s)
        if then.hangs:
            await asyncio.Event().wait()
        if then.fault:
            raise then.fault
        output = self.answer(outgoing) if self.answer else then.output
        return Answered(json.dumps(output).encode(), then.report, then.artifacts)

    async def stream(
        self, channel: Channel, supply: Supply, outgoing: Outgoing
    ) -> AsyncGenerator[list[bytes] | Report, None]:
        """As scripted."""
        self.calls.append((supply.id, outgoing))
        then = self._next(supply.id)
        done = False
        try:
            if then.after_s:
                await self.clock.sleep(then.after_s)
            for number, chunk in enumerate(then.chunks):
                if number and then.apart_s:
                    await self.clock.sleep(then.apart_s)
                if not then.together:
                    yield [json.dumps(chunk).encode()]
            if then.together:
                yield [json.dumps(chunk).encode() for chunk in then.chunks]
            if then.hangs:
                await asyncio.Event().wait()
            done = True
            if then.fault:
                raise then.fault
            yield then.report
        finally:
            if not done:
                self.left.append(supply.id)


@dataclass
class Streamed:
    """What a caller heard of a stream."""

    pieces: list[Mapping[str, Any]] = field(default_factory=list)
    call: call_pb2.Call | None = None
    fault: Fault | None = None

    @property
    def words(self) -> str:
        """The content of all pieces."""
        return "".join(choice["delta"].get("content") or "" for item in self.pieces for choice in item["choices"])


def chunk(content: str | None = None, **delta: Any) -> Mapping[str, Any]:
    """One piece of a chat."""
    said = {**delta, **({} if content is None else {"content": content})}
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": said, "finish_reason": None}]}


ROLE = chunk("", role="assistant")


@dataclass
class CallStage:
    """One process of routing over fakes, and its door."""

    tasks: Stage
    desk: CallDesk
    clock: SteeredClock
    catalog: FakeCatalog
    health: FakeHealth
    capacity: FakeCapacity
    quotes: FakeCallQuotes
    provider: ScriptedProvider
    store: MemoryCalls
    stub: Any = None

    async def settled(self) -> None:
        """Until everything has run that can run at this moment, and no errand is under way."""
        for _ in range(50):
            await asyncio.sleep(0)
        await self.desk.errands.done()

    def script(self, supply: str, *then: Then) -> None:
        """What the next calls of a Supply meet."""
        self.provider.scripts[supply] = list(then)

    async def while_time_passes(self, work: "asyncio.Task[Any]", step_s: float = 0.5) -> Any:
        """Let time pass until the work has ended."""
        passed = 0.0
        while not work.done():
            for _ in range(50):
                await asyncio.sleep(0)
                if work.done():
                    break
            else:
                self.clock.advance(step_s)
                passed += step_s
                assert passed < MOST_S, "it does not end"
        return await work

    async def invoke(self, call_id: str = "c1", given: Mapping[str, Any] = HELLO, **changes: Any) -> pb.InvokeResponse:
        """One call through RoutingService; time passes as long as it takes."""
        asked = request(call_id, given, **changes)
        return await self.while_time_passes(asyncio.ensure_future(self._invoke(asked)))

    async def _invoke(self, asked: pb.InvokeRequest) -> pb.InvokeResponse:
        async with faults_from_rpc():
            return await self.stub.Invoke(asked, timeout=MOST_S)

    async def refused(self, call_id: str = "c1", given: Mapping[str, Any] = HELLO, **changes: Any) -> Fault:
        """The Fault of a call."""
        with pytest.raises(Fault) as caught:
            await self.invoke(call_id, given, **changes)
        return caught.value

    async def stream(
        self,
        call_id: str = "c1",
        given: Mapping[str, Any] = HELLO,
        leave_after: int = 0,
        rests_s: float = 0.0,
        **changes: Any,
    ) -> "Streamed":
        """One streamed call; with `leave_after` the caller leaves after so many pieces, with `rests_s` it takes so long
        before it reads on after the first."""
        asked = pb.InvokeStreamRequest(request=request(call_id, given, **changes))
        heard = Streamed()
        await self.while_time_passes(asyncio.ensure_future(self._stream(asked, heard, leave_after, rests_s)))
        return heard

    async def _stream(self, asked: pb.InvokeStreamRequest, heard: "Streamed", leave_after: int, rests_s: float) -> None:
        answer = self.stub.InvokeStream(asked, timeout=MOST_S)
        try:
            async with faults_from_rpc():
                async for piece in answer:
                    if piece.WhichOneof("piece") == "call":
                        heard.call = piece.call
                    else:
                        heard.pieces.append(json.loads(piece.chunk))
                    if rests_s and len(heard.pieces) == 1:
                        await self.clock.sleep(rests_s)
                    if leave_after and len(heard.pieces) >= leave_after:
                        answer.cancel()
                        return
        except Fault as fault:
            heard.fault = fault

    async def call(self, call_id: str = "c1") -> call_pb2.Call:
        """The call as it is on record, once everything is settled. Its account is checked, whatever it was."""
        await self.settled()
        async with faults_from_rpc():
            found = (await self.stub.GetCall(pb.GetCallRequest(call_id=call_id), timeout=MOST_S)).call
        accounted(found)
        return found


def accounted(found: call_pb2.Call) -> None:
    """SYN-3 for any call: wall = productive + stall + overhead, to the nanosecond."""
    times = found.times
    parts = (times.productive, times.stall, times.overhead)
    assert times.wall.ToNanoseconds() == sum(part.ToNanoseconds() for part in parts)


def seconds(times: call_pb2.CallTimes) -> tuple[float, float]:
    """(productive, stall)."""
    return times.productive.ToNanoseconds() / 1e9, times.stall.ToNanoseconds() / 1e9


def request(call_id: str, given: Mapping[str, Any], **changes: Any) -> pb.InvokeRequest:
    """What a caller sends."""
    options = call_pb2.CallOptions()
    for name in ("degradation", "session_id", "parent_call_id", "skip_cache"):
        if name in changes:
            setattr(options, name, changes.pop(name))
    if "timeout_s" in changes:
        options.timeout.FromTimedelta(timedelta(seconds=changes.pop("timeout_s")))
    text = given if isinstance(given, bytes) else json.dumps(given).encode()
    fields = {"tenant": "t", "model": MODEL, **changes}
    return pb.InvokeRequest(call_id=call_id, input=text, options=options, **fields)


def call_stage(offers: Catalog | None = None, **settings: Any) -> CallStage:
    """A process, not yet reachable."""
    world, clock = steered_world()
    tasks = stage(world=(world, clock), offers=offers or chat_catalog())
    store, quotes, provider = MemoryCalls(), FakeCallQuotes(), ScriptedProvider(clock)
    errands, memory = Errands(), Memory()
    usual = {"settle_window_s": 0.0, "look_fresh_s": 0.0}
    given = Settings(database_url="memory:", **{**usual, **settings})
    desk = CallDesk(
        store=store,
        answers=store,
        alerts=tasks.desk.store,
        catalog=tasks.catalog,
        health=tasks.health,
        capacity=tasks.capacity,
        quotes=quotes,
        provider=PaidCalls(provider, tasks.ledger, store),
        world=world,
        settings=given,
        errands=errands,
        afterwards=Afterwards(errands, clock, given.settle_window_s, lambda: memory.room.wanted),
        looking=Looking(tasks.health, tasks.capacity, given.look_fresh_s),
        turn=Gathering(seat_all, id),
        prices=Gathering(lambda used: price_all(desk, used), lambda used: used.key),
        watch=Watch(clock),
        funds=tasks.desk.funds,
        holds=CallHolds(tasks.desk.funds, world, bool(given.hold_every_call)),
        memory=memory,
    )
    return CallStage(
        tasks, desk, clock, tasks.catalog, tasks.health, tasks.capacity, quotes, provider, store
    )  # fmt: skip


@asynccontextmanager
async def serving(play: CallStage) -> AsyncIterator[CallStage]:
    """RoutingService of that process over loopback."""
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    server.add(lambda target: add_RoutingServiceServicer_to_server(RoutingServicer(play.tasks.desk, play.desk), target))
    await server.start()
    async with Channels(registry=registry, caller="edge") as channels:
        play.stub = RoutingServiceStub(channels.to("routing"))
        yield play
    await server.close()
