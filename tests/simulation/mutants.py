"""Faults planted on purpose: each takes away one guard of the product, and a checker has to notice.

They come in through the doors that every world has: another store in the place of ours, other bytes on the wire.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from msgspec import structs

from libs.kernel.money import Money
from pointsman.cost_quote.v1 import budget_service_pb2
from pointsman.health.v1 import health_service_pb2
from pointsman.provider_adapter.v1 import provider_service_pb2
from services.capacity.domain.leases import Lease, Request, lease_of
from services.capacity.domain.ledger import Gate, Refusal
from services.capacity.domain.levels import Level
from services.capacity.ports import Figure
from services.capacity.store.memory import MemoryCapacityStore
from services.cost_quote.domain.budgets import HoldAsk, Moved, Refused
from services.cost_quote.store.budgets_memory import MemoryBudgets
from services.health.domain.subjects import Subject
from services.routing.domain.task import AttemptState, Task, TaskState
from services.routing.ports import Write
from services.routing.store.tasks_memory import MemoryTasks
from services.runs.domain.run import Run
from services.runs.store.memory import MemoryRuns
from tests.simulation.databases import Makers, Stores
from tests.simulation.misfortune import Temper
from tests.simulation.providers import CALM, MOODS, Mood
from tests.simulation.world import Planted

REPORT = "/pointsman.health.v1.HealthService/ReportOutcome"
RECONCILE = "/pointsman.provider_adapter.v1.ProviderService/Reconcile"
HOLD, HOLDS = (f"/pointsman.cost_quote.v1.BudgetService/{name}" for name in ("Hold", "BatchHold"))


class UnfencedTasks(MemoryTasks):
    """Fencing taken away: a late worker's write goes through (ATT-7)."""

    async def save(self, write: Write) -> Task:
        """Save under whatever epoch is in force."""
        present = await self.get(write.before.id)
        if present is None or present.state.value in ("succeeded", "failed", "cancelled"):
            return await super().save(write)
        return await super().save(replace(write, before=replace(write.before, epoch=present.epoch)))


class TalkativePast(MemoryTasks):
    """Supersession taken away: the late word of an Attempt that another one has followed still counts (ATT-4)."""

    async def save(self, write: Write) -> Task:
        """Let an old word pass where a newer Attempt stands; keep everybody else out."""
        present = await self.get(write.before.id)
        if present is None or len(present.attempts) <= len(write.before.attempts):
            return await super().save(write)
        return await super().save(replace(write, before=replace(write.before, epoch=present.epoch)))


class ResubmittingTasks(MemoryTasks):
    """Doubt taken away: an uncertain Attempt counts as not accepted, and the next one follows at once (ATT-5)."""

    async def save(self, write: Write) -> Task:
        """Save the uncertain as if it were known."""
        live = write.after.live
        if live is None or live.state is not AttemptState.SUBMISSION_UNCERTAIN:
            return await super().save(write)
        zero = Money.zero(live.quote.currency)
        sure = replace(live, state=AttemptState.NOT_ACCEPTED, finished_at=write.now, cost=zero)
        attempts = tuple(sure if attempt.id == live.id else attempt for attempt in write.after.attempts)
        again = replace(write.after, attempts=attempts, state=TaskState.QUEUED, next_action_at=write.now)
        return await super().save(replace(write, after=again))


def without(gate: Gate) -> type[MemoryCapacityStore]:
    """A ledger that does not know one of its gates, and shows nothing of it either (CAP-1)."""
    hidden = {Gate.CONCURRENCY: "in_use", Gate.HEALTH: "in_use_current_epoch", Gate.REQUESTS: "requests"}[gate]

    class Gateless(MemoryCapacityStore):
        """Admits whatever only that gate refuses."""

        async def reserve(self, request: Request) -> Lease | Refusal:
            answer = await super().reserve(request)
            if not isinstance(answer, Refusal) or answer.gate is not gate:
                return answer
            lease = lease_of(request, self._clock.now())
            self._keep(lease)
            return lease

        async def figures(self) -> list[Figure]:
            """As if nobody used anything there."""
            shown = await super().figures()
            return [replace(figure, usage=replace(figure.usage, **{hidden: 0})) for figure in shown]

    return Gateless


class OldWorkBlocks(MemoryCapacityStore):
    """The rule of epochs taken away: work from before the trip takes the slots of the probe (CAP-4a)."""

    def _leases_on(self, levels: Sequence[Level]) -> list[Lease]:
        if len(levels) == 1:  # what is shown stays true, so that somebody asks
            return super()._leases_on(levels)
        epochs = {level.subject: level.epoch for level in levels}
        return [
            structs.replace(
                lease,
                channel_epoch=epochs.get(lease.subjects[1], lease.channel_epoch),
                supply_epoch=epochs.get(lease.subjects[2], lease.supply_epoch),
            )
            for lease in super()._leases_on(levels)
        ]


class LeakyCapacity(MemoryCapacityStore):
    """Expiry taken away: what nobody gives back is held for ever (CAP-2)."""

    async def reserve(self, request: Request) -> Lease | Refusal:
        """Reserve for a year."""
        return await super().reserve(structs.replace(request, ttl=timedelta(days=365)))

    async def renew(self, holder: str, lease_ids: Any, ttl: timedelta) -> Any:
        """Renew for a year."""
        return await super().renew(holder, lease_ids, timedelta(days=365))


class TalkativeRuns(MemoryRuns):
    """The guard of revisions taken away: two replicas tell the same twice (EVENT-1)."""

    async def save(self, run: Run, drafts: Any, now: Any, desks: Any) -> Run | None:
        """Save, whoever was faster."""
        present = self._read(run.id)
        drafts = tuple(drafts)
        return await super().save(
            replace(run, revision=present.revision, last_sequence=present.last_sequence), drafts, now, desks
        )


class ForgetfulBudgets(MemoryBudgets):
    """The id of a Hold taken away: asking again for the same one reserves again (COST-11)."""

    async def hold(self, ask: HoldAsk) -> Moved | Refused:
        """Reserve, as if that id had never come."""
        self.holds.pop(ask.hold_id, None)
        return await super().hold(ask)


def unfenced_breaker(stores: Stores) -> Mapping[str, Callable[[bytes], bytes]]:
    """Epochs taken away: every outcome seems to be dispatched in the present epoch (HLT-6)."""

    def present(raw: bytes) -> bytes:
        report = health_service_pb2.ReportOutcomeRequest.FromString(raw)
        told = report.outcome
        records = {record.subject: record for record in stores.health._contents.records.values()}
        channel, supply = records.get(Subject.channel(told.channel_id)), records.get(Subject.supply(told.supply_id))
        if channel is not None and supply is not None:
            told.channel_epoch = channel.breaker.health.epoch
            told.supply_epoch = supply.breaker.health.epoch
        return report.SerializeToString()

    return {REPORT: present}


def newest_catalogue(stores: Stores) -> Mapping[str, Callable[[bytes], bytes]]:
    """Snapshots taken away: what is in flight is asked about under the newest revision's name (CAT-3)."""

    def present(raw: bytes) -> bytes:
        asked = provider_service_pb2.ReconcileRequest.FromString(raw)
        catalogs = stores.catalog.revisions
        named = {s.upstream_model: s.id for catalog in catalogs.values() for s in catalog.supplies.values()}
        supply = catalogs[max(catalogs)].supplies[named[asked.job.upstream_model]]
        asked.job.upstream_model = supply.upstream_model
        return asked.SerializeToString()

    return {RECONCILE: present}


def misfiled_holds(stores: Stores) -> Mapping[str, Callable[[bytes], bytes]]:
    """Holds taken away: the ledger takes each under another name, and who asked believes it its own (COST-9)."""

    def elsewhere(asked: budget_service_pb2.HoldRequest) -> None:
        if asked.hold_id.startswith("task:"):
            asked.hold_id = f"{asked.hold_id}:elsewhere"

    def one(raw: bytes) -> bytes:
        asked = budget_service_pb2.HoldRequest.FromString(raw)
        elsewhere(asked)
        return asked.SerializeToString()

    def many(raw: bytes) -> bytes:
        asked = budget_service_pb2.BatchHoldRequest.FromString(raw)
        for each in asked.requests:
            elsewhere(each)
        return asked.SerializeToString()

    return {HOLD: one, HOLDS: many}


def by_clocks(_stores: Stores) -> Mapping[str, Callable[[bytes], bytes]]:
    """Counted silence taken away: records have lacked a job for as long as the clocks say (ATT-6)."""

    def present(raw: bytes) -> bytes:
        asked = provider_service_pb2.ReconcileRequest.FromString(raw)
        asked.ClearField("silence")
        return asked.SerializeToString()

    return {RECONCILE: present}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted fault, and the laws of which one has to be seen broken."""

    planted: Planted
    laws: frozenset[str]
    seed: int
    """The first seed to try: one that has caught it before."""


def _mutant(seed: int, planted: Planted, *laws: str) -> Mutant:
    alone = planted if planted.productions else replace(planted, productions=0)
    return Mutant(alone, frozenset(laws), seed)


CAPACITY = "capacity_held_and_returned"
LATE_WRITES = ("no_double_submission", "attempts_within_budget", "results_are_the_jobs", "every_run_rests")
REVOKED = Temper(0.5, {"key": 1.0, "mood": 3.0})
SLOW = Mood("slow", {"slow_taken": 1.0})
FLAKY = next(mood for mood in MOODS if mood.name == "flaky")
SLUGGISH = Mood(
    "sluggish", {"slow_taken": 0.6, "error": 0.4}, {"ok": 0.6, "hang": 0.4}, {"fails": 0.7, "succeeds": 0.3}
)
PAUSES = Temper(0.2, {"pause": 1.0}, (SLUGGISH,), {"routing": 1.0})
DOUBTFUL = Temper(0.5, {"mood": 1.0}, (FLAKY,))
OVERDUE = Mood("overdue", {"balance": 1.0}, job={"succeeds": 1.0})
TRIPS = Temper(0.5, {"mood": 1.0}, (OVERDUE, CALM))
BY_TURNS = replace(PAUSES, longest_pause_s=150.0)
STEPS = Temper(0.25, {"kill": 2.0, "step": 1.0, "mood": 3.0}, (SLOW,), {"routing": 1.0})
REPRICED = Temper(0.3, {"catalog": 1.0}, (FLAKY,))
STEPPING = Planted(temper=STEPS, size="large")
MISJUDGING = Planted(rewrites=unfenced_breaker, temper=TRIPS)
SILENT = "superseded_stay_silent"
DYING_RUNS = Temper(0.25, {"kill": 3.0, "database": 1.0}, (CALM,), {"runs": 6.0, "cost_quote": 3.0, "routing": 1.0})


def producing(makers: Makers) -> Planted:
    """Three productions at providers that are well, carried by processes that die."""
    return Planted(makers, temper=DYING_RUNS, size="small", productions=3)


MUTANTS: Mapping[str, Mutant] = {
    "fencing": _mutant(27, Planted({"tasks": UnfencedTasks}, temper=BY_TURNS, size="middle"), SILENT, *LATE_WRITES),
    "doubt": _mutant(3, Planted({"tasks": ResubmittingTasks}, temper=DOUBTFUL), "no_double_submission"),
    "ledger: slots": _mutant(1, Planted({"capacity": without(Gate.CONCURRENCY)}), CAPACITY),
    "ledger: slots by health": _mutant(8, Planted({"capacity": without(Gate.HEALTH)}, temper=REVOKED), CAPACITY),
    "ledger: requests a minute": _mutant(3, Planted({"capacity": without(Gate.REQUESTS)}), CAPACITY),
    "ledger: old work beside the probe": _mutant(29, Planted({"capacity": OldWorkBlocks}, temper=REVOKED), CAPACITY),
    "ledger: expiry": _mutant(88, Planted({"capacity": LeakyCapacity}), CAPACITY),
    "breaker: epochs": _mutant(20, MISJUDGING, "closed_circuits_only"),
    "supersession: attempts": _mutant(133, Planted({"tasks": TalkativePast}, temper=BY_TURNS, size="middle"), SILENT),
    "supersession: the catalogue": _mutant(3, Planted(rewrites=newest_catalogue, temper=REPRICED), *LATE_WRITES),
    "money: held before it is sent": _mutant(1, Planted(rewrites=misfiled_holds), "nothing_unheld"),
    "silence that is counted": _mutant(3, replace(STEPPING, rewrites=by_clocks), "no_double_submission"),
    "revisions of runs": _mutant(10, Planted({"runs": TalkativeRuns}), "events_without_gap"),
    "productions: one hold an id": _mutant(2, producing({"budgets": ForgetfulBudgets}), "ledger_balanced"),
}  # fmt: skip
