"""The context without its wire, in a world that a test steers: real use-cases over the store in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from libs.kernel.world import World
from services.runs.app.advance_runs import Advance
from services.runs.app.ask_again import AskAgain
from services.runs.app.command_run import Desk
from services.runs.app.create_run import create_run
from services.runs.app.examine_artifacts import Inspector
from services.runs.app.hands import Hands
from services.runs.app.hub import Hub
from services.runs.app.plans import Plans
from services.runs.app.recording import Recorder
from services.runs.app.redrive_run import Redrive, redrive_run
from services.runs.app.review_desk import ReviewDesk
from services.runs.domain.deciding import Verdict
from services.runs.domain.desks import Review
from services.runs.domain.history import rebuilt
from services.runs.domain.plan import Plan
from services.runs.domain.run import Event, Node, NodeState, Order, Run
from services.runs.store.memory import MemoryRuns
from services.runs.wire.runs import run_to_proto
from tests.support.worlds import SteeredClock, steered_world
from tests.unit.runs.fake_budgets import FakeBudgets
from tests.unit.runs.fakes import FakeAlerts, FakeExaminer, FakeRouting


@dataclass
class House:
    """One process of runs; `tenant` of everything is "a" unless said otherwise."""

    store = MemoryRuns
    routing: FakeRouting = field(default_factory=FakeRouting)
    budgets: FakeBudgets = field(default_factory=FakeBudgets)
    examiner: FakeExaminer = field(default_factory=FakeExaminer)
    alerts: FakeAlerts = field(default_factory=FakeAlerts)

    def __post_init__(self) -> None:
        self.world: World
        self.clock: SteeredClock
        self.world, self.clock = steered_world()
        self.runs = self.store(self.world.ids)
        self.hub = Hub(self.runs)
        self.plans = Plans()
        self.recorder = Recorder(self.runs, self.hub, self.world, self.alerts)
        self.advance = self.beside(self.recorder)
        self.again = AskAgain(self.runs, self.budgets, self.recorder, self.world)
        self.desk = Desk(self.runs, self.routing, self.recorder, self.world, self.budgets)
        self.people = ReviewDesk(self.desk, self.runs, self.plans, self.budgets)

    def beside(self, recorder: Recorder | None = None) -> Advance:
        """The ticks of another process over the same store."""
        recorder = recorder or Recorder(self.runs, Hub(self.runs), self.world, self.alerts)
        hands = Hands(self.runs, self.routing, self.budgets, Inspector(self.examiner), self.alerts, self.world)
        return Advance(self.runs, self.routing, hands, self.plans, recorder, self.world)

    async def create(self, model: str = "clip", tenant: str = "a", **arguments: Any) -> Run:
        """A new single generation."""
        order = Order(model, {"prompt": "x"})
        run, _ = await create_run(
            self.runs, self.routing, self.world, self.budgets, tenant=tenant, order=order, labels={}, **arguments
        )
        return run

    async def produce(self, document: Mapping[str, Any]) -> Run:
        """A new production, not yet carried on."""
        run, _ = await create_run(
            self.runs,
            self.routing,
            self.world,
            self.budgets,
            tenant="a",
            order=Order("", {}),
            labels={},
            production=document,
        )
        return run

    async def carry(self, run: Run, *, seconds: float = 0) -> Run:
        """Move the time on, let the ticks do what they can, and answer the Run as it is then."""
        self.clock.advance(seconds)
        before = -1
        while (now := await self.now(run)).last_sequence != before:
            before = now.last_sequence
            await self.advance.submit_pending()
            await self.advance.follow_running()
            await self.advance.carry_productions()
        return now

    async def now(self, run: Run) -> Run:
        """The Run as it is."""
        found = await self.runs.get(run.id)
        assert found is not None
        return found

    def plan(self, run: Run) -> Plan:
        """Its plan."""
        return self.plans.of(run)

    async def told(self, run: Run) -> Any:
        """As its readers see it."""
        now = await self.now(run)
        return run_to_proto(self.plan(now), now, self.clock.now())

    def answer_all(self, run: Run) -> None:
        """Let every Task that was handed over end well."""
        self.routing.answer_all()

    async def events(self, run: Run) -> list[Event]:
        """Its whole history."""
        return await self.runs.events(run.id, 0, 100_000)

    async def kinds(self, run: Run) -> list[str]:
        """The kinds of its history, in order."""
        return [event.kind for event in await self.events(run)]

    async def said(self, run: Run, kind: str) -> list[Mapping[str, Any]]:
        """What the events of one kind tell."""
        return [event.data for event in await self.events(run) if event.kind == kind]

    async def reviews(self, run: Run) -> list[Review]:
        """What waits for people, in the order of the queue."""
        return (await self.people.reviews("a", (), run.id, "", 100))[0]

    async def decide(self, run: Run, decision: str, on: str = "", **said: Any) -> Run:
        """Decide the first review of the queue, or the first about a node, and carry the Run on."""
        review = next(review for review in await self.reviews(run) if on in ("", review.question.node))
        verdict = Verdict(review.question.decisions[0].__class__(decision), "lena", **said)
        await self.people.decide("a", review.id, verdict, "")
        return await self.carry(run)

    async def redrive(self, run: Run, node: str = "", **asked: Any) -> Run:
        """Redrive, and carry the Run on."""
        await redrive_run(self.desk, self.plans, "a", run.id, Redrive(node, "as a test wants it", **asked))
        return await self.carry(run)

    async def rebuilds(self, run: Run) -> None:
        """EVENT-3: the history alone gives the Run that is kept."""
        kept = await self.now(run)
        told = rebuilt(await self.events(run))
        assert bare(told) == bare(kept)


def bare(run: Run) -> dict[str, Any]:
    """A Run's state without what only guards its row."""
    names = [name for name in run.__slots__ if name not in ("revision",)]
    return {name: getattr(run, name) for name in names}


def states(run: Run) -> dict[str, str]:
    """Each node's state."""
    return {node.id: node.state.value for node in run.nodes.values()}


def in_state(run: Run, state: NodeState) -> list[Node]:
    """The nodes in that state."""
    return [node for node in run.nodes.values() if node.state is state]
