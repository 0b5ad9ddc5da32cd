"""Whatever providers, people and crashes do to a production: its laws hold at every step, and it comes to rest."""

import asyncio
import os
import random
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.runs.app.command_run import cancel_run, pause_run, resume_run, steer_run
from services.runs.app.redrive_run import Redrive, redrive_run
from services.runs.domain.deciding import Verdict
from services.runs.domain.engine import Record, next_commands
from services.runs.domain.run import (
    TERMINAL_KINDS,
    TERMINAL_STATES,
    WAITING_TO_START,
    Decision,
    NodeState,
    Question,
    Run,
)
from services.runs.domain.waking import JUST_AFTER, wakes_at
from tests.unit.runs.fakes import DOUBTED, OUT_OF_ORDER, REFUSED, FakeRouting
from tests.unit.runs.house import House
from tests.unit.runs.test_productions import episode

SEEDS = 400 if os.environ.get("POINTSMAN_DRILLS") else 8
STEPS = 60
FAILURES = (OUT_OF_ORDER, OUT_OF_ORDER, REFUSED, DOUBTED)


class Fate:
    """One seed's misfortunes."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.house = House(FakeRouting(answering=True))
        nodes = [*(f"frames/S0{n}" for n in range(1, 5)), *(f"motion/S0{n}" for n in range(1, 5)), "film"]
        self.nodes = nodes
        self.house.routing.script = {
            name: self.chance.choices(FAILURES, k=self.chance.randrange(4))
            for name in nodes
            if self.chance.random() < 0.4
        }
        cost = self.chance.choice(["100.00", "14.00", "9.00"])
        self.document = episode(
            tolerate=self.chance.randrange(3),
            budget={"currency": "CNY", "cost": cost, "soft": "6.00", "review_minutes": self.chance.choice([12, 500])},
            reviews={"most": self.chance.choice([1, 20]), "resume": 0},
        )
        self.steered = 0

    async def play(self) -> Run:
        """Misfortunes first, then people who mend everything, until it rests."""
        run = await self.house.produce(self.document)
        for _ in range(STEPS):
            await self._misfortune(run)
            run = await self.house.carry(run, seconds=self.chance.choice([0, 1, 30, 600, 90_000]))
            await self.house.rebuilds(run)
            self._sleeps(run)
        for _ in range(STEPS):
            if run.state in TERMINAL_STATES:
                break
            await self._mend(run)
            run = await self.house.carry(run, seconds=3_600)
            await self.house.rebuilds(run)
        return run

    def _sleeps(self, run: Run) -> None:
        """Nothing follows from the time alone before the Run is said to wake."""
        plan, now = self.house.plan(run), self.house.clock.now()
        commands = next_commands(plan, run, now)
        if not any(isinstance(command, Record) for command in commands):
            wakes = wakes_at(plan, run, now) or now + timedelta(days=9_999)
            assert next_commands(plan, run, wakes - JUST_AFTER) == commands

    async def _misfortune(self, run: Run) -> None:
        deeds = [self._nothing, self._steer, self._pause, self._resume, self._redrive, self._decide, self._decide]
        try:
            await self.chance.choice(deeds)(run)
        except Fault as fault:
            if fault.code not in {"run_terminal", "conflict", "validation_failed", "not_found"}:
                raise

    async def _nothing(self, run: Run) -> None:
        if self.chance.random() < 0.05:
            await cancel_run(self.house.desk, "a", run.id)

    async def _steer(self, run: Run) -> None:
        kind = self.chance.choice(["style", "nobody declares this"])
        await steer_run(self.house.desk, self.house.plans, "a", run.id, kind, {"text": f"darker {self.steered}"}, "")
        self.steered += 1

    async def _pause(self, run: Run) -> None:
        await pause_run(self.house.desk, "a", run.id, "", f"p{self.chance.randrange(3)}")

    async def _resume(self, run: Run) -> None:
        await resume_run(self.house.desk, "a", run.id, "", f"r{self.chance.randrange(3)}")

    async def _redrive(self, run: Run) -> None:
        node = self.chance.choice(["", "frames", "motion", "looked", "release", *self.nodes])
        changes: dict[str, Any] | None = {"prompt": f"other {self.chance.randrange(9)}"} if node else None
        supply = self.chance.choice(["", "b/two"]) if node else ""
        await redrive_run(
            self.house.desk, self.house.plans, "a", run.id, Redrive(node, "again", input=changes, supply=supply)
        )

    async def _decide(self, run: Run) -> None:
        waiting = await self.house.reviews(run)
        if waiting:
            review = self.chance.choice(waiting)
            decision = self.chance.choice(review.question.decisions)
            await self._say(review.question, decision)

    async def _say(self, asked: Question, decision: Decision) -> None:
        node = next((name for name in asked.subjects if name in self.nodes), "")
        limits: dict[str, Any] = {"budget": {"currency": "CNY", "amount": "200.00"}}
        if asked.dimension == "review_minutes":
            limits = {"review_minutes": 100_000}
        verdict = Verdict(decision, "lena", "", node, {"prompt": "better"}, "b/two", **limits)
        await self.house.people.decide("a", asked.id, verdict, "")

    async def _mend(self, run: Run) -> None:
        """A patient person: everything is approved, paid for, or made again."""
        await resume_run(self.house.desk, "a", run.id, "", "")
        for review in await self.house.reviews(run):
            for decision in (Decision.RAISE_BUDGET, Decision.APPROVE, Decision.WAIVE):
                if decision in review.question.decisions:
                    await self._say(review.question, decision)
                    break


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_production_keeps_its_laws(seed: int) -> None:
    """RUN-1, RUN-6, EVENT-1, EVENT-3, STEER-3, COST-10, COST-11, DLQ-1: gap-free, rebuilt from its events at every
    step, one end for each life, every input consumed or superseded once, every Hold of money and of minutes settled,
    every failed node a case file."""
    fate = Fate(seed)
    async with asyncio.timeout(60):
        run = await fate.play()
    assert run.state in TERMINAL_STATES
    events = await fate.house.events(run)
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    kinds = [event.kind for event in events]
    lives = 1 + sum(_ended(before) and kind == "run_redriven" for before, kind in pairwise(kinds))
    assert sum(_ended(event.kind) for event in events) == lives
    assert _ended(events[-1].kind)
    accepted = Counter(event.data["sequence"] for event in events if event.kind == "run.steer.accepted")
    ends = Counter(
        event.data["sequence"] for event in events if event.kind in ("run.steer.consumed", "run.steer.superseded")
    )
    assert set(accepted) == set(ends) == set(range(1, fate.steered + 1))
    assert set(ends.values()) <= {1}
    budgets = fate.house.budgets
    assert set(budgets.held) == budgets.over
    assert set(budgets.minutes) == budgets.looked
    assert sum(count for _, count in budgets.minutes.values()) == run.review_minutes
    await _lies_where_it_can_be_found(fate.house, run)
    assert sum(budgets.spent.values(), Decimal(0)) == (run.usage.cost.amount if run.usage.cost else 0)


async def _lies_where_it_can_be_found(house: House, run: Run) -> None:
    """DLQ-1: at its end nothing waits, and every node that failed has an open case file, a stopped map in its items."""
    letters, _ = await house.people.letters("a", run.id, False, "", 1_000)
    lying = {letter.node for letter, _ in letters}
    failed = {node.id for node in run.nodes.values() if node.state is NodeState.FAILED}
    stopped = {name for name in failed if failed & set(run.nodes[name].items)}
    assert failed - stopped <= lying <= failed
    assert not any(node.state in WAITING_TO_START for node in run.nodes.values())


def _ended(kind: str) -> bool:
    return kind in TERMINAL_KINDS.values()
