"""Peers of routing that a test scripts, and a stage on which Tasks are driven step by step under a steered clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.kernel.world import World
from libs.store.gathering import Gathering
from services.routing.app.desk import Bell, Desk, Errands
from services.routing.app.funds import Funds
from services.routing.app.perform_step import perform_step
from services.routing.app.sending import Sending
from services.routing.app.submit_task import Submission, submit_task
from services.routing.app.tell_outcomes import tell_outcomes
from services.routing.app.turn import place_all
from services.routing.app.usher import Usher
from services.routing.app.work_queue import WorkQueue
from services.routing.domain.alternative import PriceList
from services.routing.domain.catalog import Catalog, Channel, Supply
from services.routing.domain.decision import CapacityView, HealthView, QuoteView
from services.routing.domain.feedback import SILENT, Feedback
from services.routing.domain.request import Request
from services.routing.domain.task import Artifact, Attempt, Task
from services.routing.ports import (
    Delivered,
    Lane,
    Polled,
    Priced,
    Reconciled,
    Refused,
    Reserved,
    Submitted,
)
from services.routing.ports.prices import UsageItem, UsagePrice
from services.routing.settings import Settings
from services.routing.store.tasks_memory import MemoryTasks
from tests.support.worlds import SteeredClock, steered_world
from tests.unit.routing.dispatch_health import Effect, FakeHealth, no_effect
from tests.unit.routing.dispatch_offers import MODEL, FakeCatalog, catalog
from tests.unit.routing.fake_ledger import FakeLedger
from tests.unit.routing.paid import PaidProvider

FILM = Artifact("a" * 64, "video/mp4", 1000)


@dataclass
class FakeCapacity:
    """`Capacity` with real leases: slots of each Supply and Channel, times to live by the clock."""

    clock: SteeredClock
    effect: Effect = no_effect
    ttl_s: float = 60.0
    leases: dict[str, tuple[Supply, datetime]] = field(default_factory=dict)
    taken: dict[str, datetime] = field(default_factory=dict)
    """When leases were taken, where it matters."""
    refusals: list[Refused] = field(default_factory=list)
    highest: dict[str, int] = field(default_factory=dict)
    applied: list[dict[str, HealthView]] = field(default_factory=list)
    renewed: list[str] = field(default_factory=list)
    tokens: dict[str, int] = field(default_factory=dict)  # by lease, what was set aside of the windows of tokens
    told: dict[str, Feedback] = field(default_factory=dict)
    """By lease, what its release said."""
    away: Fault | None = None

    def live(self) -> dict[str, Supply]:
        """Leases in force."""
        now = self.clock.now()
        return {key: held for key, (held, until) in self.leases.items() if until > now}

    def in_use(self, name: str) -> int:
        """Slots of a Supply in use."""
        return sum(1 for held in self.live().values() if held.id == name)

    async def held(self) -> Sequence[tuple[str, datetime]]:
        """Leases in force, as if taken with the last renewal."""
        ttl, now = timedelta(seconds=self.ttl_s), self.clock.now()
        return [(key, self.taken.get(key, until - ttl)) for key, (_, until) in self.leases.items() if until > now]

    async def snapshot(
        self,
    ) -> tuple[Mapping[str, CapacityView], Mapping[str, CapacityView], Mapping[str, CapacityView]]:
        """Only Supplies: a Channel has no gate here."""
        await self.effect("capacity.snapshot")
        if self.away:
            raise self.away
        supplies = {held.id: held for held, _ in self.leases.values()}
        return {}, {}, {
            key: CapacityView(held.limits.concurrency, self.in_use(key), self.in_use(key))
            for key, held in supplies.items()
        }  # fmt: skip

    async def reserve(
        self,
        lease_id: str,
        supply: Supply,
        channel_health: HealthView,
        supply_health: HealthView,
        *,
        tokens: int = 0,
        ttl_s: float | None = None,
    ) -> Reserved | Refused:
        """A slot, unless a refusal is scripted or all are in use."""
        await self.effect("capacity.reserve")
        if self.away:
            raise self.away
        if self.refusals:
            return self.refusals.pop(0)
        used, limit = self.in_use(supply.id), supply.limits.concurrency
        if limit and used >= limit and lease_id not in self.live():
            return Refused(f"supply {supply.id}", "concurrency", limit, used)
        until = self.clock.now() + timedelta(seconds=ttl_s or self.ttl_s)
        self.leases[lease_id] = (supply, until)
        self.tokens[lease_id] = tokens
        self.highest[supply.id] = max(self.highest.get(supply.id, 0), self.in_use(supply.id))
        await self.effect("capacity.reserved")
        return Reserved(lease_id, until)

    async def renew(self, lease_ids: Sequence[str]) -> frozenset[str]:
        """Prolong what has not lapsed."""
        live = self.live()
        for lease_id in lease_ids:
            if lease_id in live:
                self.leases[lease_id] = (live[lease_id], self.clock.now() + timedelta(seconds=self.ttl_s))
                self.renewed.append(lease_id)
        return frozenset(lease_ids) - live.keys()

    async def release(self, lease_id: str, feedback: Feedback = SILENT) -> None:
        """Give it back."""
        await self.effect("capacity.release")
        if self.away:
            raise self.away
        self.told[lease_id] = feedback
        self.leases.pop(lease_id, None)

    async def apply_limits(self, catalog: Catalog) -> int:
        """Not of interest here."""
        return catalog.revision

    async def apply_health(self, channels: Mapping[str, HealthView], supplies: Mapping[str, HealthView]) -> None:
        """Kept."""
        self.applied.append({**channels, **supplies})


@dataclass
class FakeQuotes:
    """`Quotes`: one unit of money for each Supply, unless set."""

    effect: Effect = no_effect
    amounts: dict[str, Decimal] = field(default_factory=dict)
    rate: Decimal | None = None  # for each second, in place of them
    revision: int | None = None
    """The catalogue revision whose rules are known; None = always the one asked for."""
    views: dict[str, QuoteView] = field(default_factory=dict)
    prices: dict[str, UsagePrice] = field(default_factory=dict)
    away: Fault | None = None
    settled: list[UsageItem] = field(default_factory=list)

    async def quote(
        self, kind: str, billing_mode: str, candidates: Sequence[Priced], revision: int
    ) -> Mapping[str, QuoteView]:
        """As set."""
        if self.revision is not None and self.revision < revision:
            raise Fault.of("governance_backend_down", "not told yet", retry_after_ms=500)
        if self.revision is not None and self.revision > revision:
            raise Fault.of("revision_conflict", "newer prices are in force")
        await self.effect("quotes.quote")
        return {item.supply.id: self.views.get(item.supply.id) or QuoteView(self._amount(item)) for item in candidates}

    def _amount(self, item: Priced) -> Decimal:
        fixed = self.amounts.get(item.supply.id, Decimal(1))
        return self.rate * item.input["duration_s"] if self.rate else fixed

    async def quote_under(
        self, kind: str, billing_mode: str, candidates: Sequence[Priced], prices: PriceList, at: datetime
    ) -> Mapping[str, QuoteView]:
        """One unit for each second of the rate that the first rule of a Supply names."""
        rates = {key: Decimal(rule.spec["rate"]) for key, rule in prices.rules.items()}
        asked = ((item.supply, item.input["duration_s"]) for item in candidates)
        return {supply.id: QuoteView(rates[supply.prices[0]] * seconds) for supply, seconds in asked}

    async def price_usage(self, items: Sequence[UsageItem]) -> Mapping[str, UsagePrice]:
        """As set by Supply; without a word of it there is no price."""
        await self.effect("quotes.price_usage")
        if self.away:
            raise self.away
        self.settled += items
        nothing = UsagePrice(None, unpriced_reason="no figure")
        return {item.key: self.prices.get(item.supply, nothing) for item in items}

    async def apply_prices(self, catalog: Catalog) -> int:
        """Not of interest here."""
        return catalog.revision


Answer = Submitted | Fault | None
"""None: take the job, and let the answer be lost."""


def told(scripted: Any) -> Any:
    """As scripted: a Fault is raised."""
    if isinstance(scripted, Fault):
        raise scripted
    return scripted


@dataclass
class FakeProvider:
    """`Provider` with a ledger: what was really taken, by client token. The judge of double submission (VER-7)."""

    effect: Effect = no_effect
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    """By Supply id, what its next submissions answer; without one a job is accepted."""
    polls: list[Polled | Fault] = field(default_factory=list)
    """What the next polls answer; without one a job has succeeded."""
    verdicts: list[Reconciled | Fault] = field(default_factory=list)
    """What the records answer; without one they tell the truth of the ledger."""
    stops: list[tuple[bool, Money | None] | Fault] = field(default_factory=list)
    ledger: dict[str, str] = field(default_factory=dict)
    """Client token -> provider task id."""
    places: dict[str, str] = field(default_factory=dict)
    """Client token -> the Supply that has its job."""
    silent: set[str] = field(default_factory=set)
    """Supplies whose records tell nothing of what may have been sent."""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """(method, Supply id or token)."""
    cost: Money | None = None

    def sends(self, token: str) -> int:
        """How often that token was submitted."""
        return sum(1 for name, of in self.calls if name == "submit" and of == token)

    async def submit(self, channel: Channel, supply: Supply, attempt: Attempt) -> Submitted:
        """Take it into the ledger as scripted."""
        await self.effect("provider.submit")
        self.calls.append(("submit", attempt.client_token))
        script = self.answers.get(supply.id, [])
        answer = script.pop(0) if script else Submitted(f"job-{attempt.client_token}")
        if isinstance(answer, Fault):
            raise answer
        self.ledger[attempt.client_token] = f"job-{attempt.client_token}"
        self.places[attempt.client_token] = supply.id
        await self.effect("provider.submitted")
        if answer is None:
            raise Fault.of("submission_unknown", "the connection broke after the body was sent")
        return answer

    async def poll(self, channel: Channel, supply: Supply, attempt: Attempt) -> Polled:
        """As scripted."""
        await self.effect("provider.poll")
        self.calls.append(("poll", supply.id))
        return told(self.polls.pop(0) if self.polls else Polled("succeeded", self.delivered()))

    async def cancel(self, channel: Channel, supply: Supply, attempt: Attempt) -> tuple[bool, Money | None]:
        """As scripted; without a script it stops."""
        await self.effect("provider.cancel")
        self.calls.append(("cancel", supply.id))
        return told(self.stops.pop(0) if self.stops else (True, None))

    async def reconcile(self, channel: Channel, supply: Supply, attempt: Attempt, silent_s: float) -> Reconciled:
        """As scripted, else the truth."""
        await self.effect("provider.reconcile")
        self.calls.append(("reconcile", attempt.client_token))
        if self.verdicts:
            return told(self.verdicts.pop(0))
        job = self.ledger.get(attempt.client_token)
        return Reconciled("accepted", job, "its list") if job else Reconciled("not_accepted", "", "its list")

    def delivered(self) -> Delivered:
        """What every job gives."""
        return Delivered((FILM,), {}, {"seconds": 5}, self.cost)

    async def look_up(
        self, channel: Channel, supply: Supply, attempt: Attempt, until: datetime, silent_s: float
    ) -> Reconciled:
        """As scripted for that Supply, else the truth of its own ledger; nothing is sent."""
        self.calls.append(("look_up", attempt.client_token))
        if supply.id in self.silent:
            return Reconciled("unknown", "", "it keeps no records to ask")
        job = self.ledger.get(attempt.client_token)
        here = job is not None and self.places.get(attempt.client_token, supply.id) == supply.id
        return Reconciled("accepted", job or "", "its list") if here else Reconciled("not_accepted", "", "its list")

    async def unresolved_secrets(self, refs: Sequence[str]) -> Mapping[str, str]:
        """All are there."""
        return {}

    async def adapters(self) -> Mapping[str, frozenset[str]]:
        """One."""
        return {"ark": frozenset({"list"})}


@dataclass
class Stage:
    """One process of routing over fakes, driven by hand."""

    desk: Desk
    clock: SteeredClock
    catalog: FakeCatalog
    health: FakeHealth
    capacity: FakeCapacity
    quotes: FakeQuotes
    provider: FakeProvider
    dispatch: WorkQueue
    follow: WorkQueue
    ledger: FakeLedger

    async def submit(self, task_id: str = "t1", **changes: Any) -> Task:
        """Take a Task into care."""
        request = Request(**{"tenant": "t", "model": MODEL, "input": {"prompt": "a boat", "duration_s": 5}, **changes})
        return await submit_task(self.desk, Submission(task_id, request))

    async def work(self) -> None:
        """Scan both lanes until nothing is due any more at this moment."""
        for _ in range(200):
            await self.desk.usher.tick()
            await self.dispatch.scan()
            await self.follow.scan()
            if not self.dispatch.in_hand and not self.follow.in_hand:
                return
            await self.dispatch.settled()
            await self.follow.settled()
        raise AssertionError("the queue does not come to rest at one moment")

    async def pass_time(self, seconds: float, step_s: float = 0.5) -> None:
        """Let time pass, working at every step of it."""
        passed = 0.0
        while passed < seconds:
            self.clock.advance(step_s)
            passed += step_s
            await self.work()
            await tell_outcomes(self.desk)

    async def task(self, task_id: str = "t1") -> Task:
        """The Task as stored."""
        task = await self.desk.store.get(task_id)
        assert task is not None
        return task


def stage(
    *,
    offers: Catalog | None = None,
    store: Any = None,
    world: tuple[World, SteeredClock] | None = None,
    effect: Effect = no_effect,
    worker: str = "worker-1",
    like: Stage | None = None,
    **settings: Any,
) -> Stage:
    """A process; `like` another one shares its store, peers and time, as a second replica or a restart would."""
    made, clock = world or (like.desk.world, like.clock) if like else world or steered_world()
    wiring = like or _wiring(offers or catalog(), clock, effect)
    kept = store or (like.desk.store if like else MemoryTasks())
    given = Settings(database_url="memory:", **settings)
    usher = Usher(kept, made.clock, given.waiting_look_s)
    if given.hints:
        usher.on_hint = lambda: None  # `Stage.work` ticks in any case
    desk = Desk(
        store=kept,
        catalog=wiring.catalog,
        health=wiring.health,
        capacity=wiring.capacity,
        quotes=wiring.quotes,
        provider=PaidProvider(wiring.provider, wiring.ledger, kept),
        world=made,
        settings=given,
        worker=worker,
        bell=Bell(),
        turn=Gathering(place_all, lambda ask: ask[1].id),
        usher=usher,
        errands=Errands(),
        sending=Sending(given.submissions_per_channel),
        funds=Funds(wiring.ledger),
    )
    return replace(
        wiring,
        desk=desk,
        dispatch=WorkQueue(desk, Lane.DISPATCH, 64, perform_step, aside=lambda: desk.sending.total),
        follow=WorkQueue(desk, Lane.FOLLOW, 64, perform_step),
    )


def _wiring(offers: Catalog, clock: SteeredClock, effect: Effect) -> Stage:
    """Peers of one's own."""
    return Stage(  # type: ignore[call-arg]  # the queues and the desk are made by `stage`
        None,  # type: ignore[arg-type]  # see above
        clock,
        FakeCatalog([offers]),
        FakeHealth(effect, clock=clock),
        FakeCapacity(clock, effect),
        FakeQuotes(effect),
        FakeProvider(effect),
        None,  # type: ignore[arg-type]  # see above
        None,  # type: ignore[arg-type]  # see above
        FakeLedger(clock),
    )
