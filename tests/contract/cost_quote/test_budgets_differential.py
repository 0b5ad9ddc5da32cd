"""Every ledger is the model (VER-3): random histories, the same answer and the same figures after every step.

The model is the memory store: each of its methods is one call of the pure ledger, and `checking.check` holds its
figures, its Holds and its entries together after every step.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from libs.faults.fault import Fault
from services.cost_quote.domain.budgets import (
    Asked,
    ChangeAsk,
    Declaration,
    EnlargeAsk,
    HoldAsk,
    ReleaseAsk,
    SettleAsk,
)
from services.cost_quote.ports import Budgets
from services.cost_quote.store.budgets_memory import MemoryBudgets
from tests.contract.cost_quote.ledgers import Bench, bench, cny, emptied
from tests.support.worlds import START

BUDGETS = st.sampled_from(["p", "e", "s", "t", "other"])
PARENTS = {"p": "", "e": "p", "s": "e", "t": "e", "other": ""}
UNLIMITED = ("open", "below")
"""A root and its child that nothing ever limits."""
ANYWHERE = BUDGETS | st.sampled_from(UNLIMITED)
HOLDS = st.sampled_from([f"hold-{number}" for number in range(8)])
LIMITS = st.builds(cny, st.sampled_from([0, 0, 6, 9]), st.sampled_from([0, 0, 3]), st.sampled_from([0, 0, 5]))
DEADLINES = st.sampled_from([None, None, START + timedelta(seconds=60)])


@st.composite
def asks(draw: st.DrawFn) -> Asked:
    """Some yuan or dollars; a dollar is two yuan, and nobody knows a pound."""
    currency = draw(st.sampled_from(["", "CNY", "CNY", "CNY", "USD", "GBP"]))
    cost = draw(st.integers(0, 4)) * 10**9 if currency else 0
    worth = {"CNY": {"CNY": cost, "USD": cost // 2}, "USD": {"USD": cost, "CNY": cost * 2}, "GBP": {"GBP": cost}}
    return Asked(cost, currency, draw(st.integers(0, 2)), draw(st.integers(0, 2)), worth.get(currency, {}))


async def answer_of(call: Awaitable[Any]) -> Any:
    """What it answers, or the fault in which it ends."""
    try:
        return await call
    except Fault as fault:
        return fault


class Machine(RuleBasedStateMachine):
    """One example runs on one new backend, made by `make`; `steps` counts them over all examples."""

    make: ClassVar[Callable[[], Coroutine[Any, Any, Bench]]]
    steps: ClassVar[list[int]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.ground = self.runner.run(type(self).make())
        self.model = MemoryBudgets(self.ground.clock)
        self.same(lambda store: store.create(Declaration("p", "project", currency="CNY", hard=cny(20))))
        self.same(lambda store: store.create(Declaration("open", "tenant", currency="CNY")))
        self.same(lambda store: store.create(Declaration("below", "project", "open")))

    def same(self, call: Callable[[Budgets], Awaitable[Any]]) -> None:
        """One step of both, and everything that can be seen afterwards."""
        self.steps[0] += 1

        async def step() -> None:
            ours, theirs = await answer_of(call(self.model)), await answer_of(call(self.ground.budgets))
            assert _plain(ours) == _plain(theirs)
            mine, its = await self.model.find("", "", 0, 100), await self.ground.budgets.find("", "", 0, 100)
            assert [_plain(budget) for budget in mine] == [_plain(budget) for budget in its]
            for budget in mine:
                entries = await self.model.entries(budget.id, 0, 1000)
                assert entries == await self.ground.budgets.entries(budget.id, 0, 1000)
            assert await self.model.mismatches() == await self.ground.budgets.mismatches() == []
            assert await self.ground.budgets.mismatches(whole=True) == []

        self.runner.run(step())

    @rule(
        budget=BUDGETS, currency=st.sampled_from(["", "CNY", "CNY", "USD"]), hard=LIMITS, soft=LIMITS,
        deadline=DEADLINES,
    )  # fmt: skip
    def create(self, budget: str, currency: str, hard: Any, soft: Any, deadline: Any) -> None:
        told = Declaration(
            budget, "level", PARENTS[budget], currency=currency, hard=hard, soft=soft, deadline_at=deadline
        )
        self.same(lambda store: store.create(told))

    @rule(
        budget=BUDGETS, hard=st.none() | LIMITS, soft=st.none() | LIMITS, deadline=DEADLINES,
        request=st.sampled_from(["", "", "one", "two"]),
    )  # fmt: skip
    def change(self, budget: str, hard: Any, soft: Any, deadline: Any, request: str) -> None:
        ask = ChangeAsk(budget, "a person", hard, soft, deadline_at=deadline, request_id=request)
        self.same(lambda store: store.change(ask))

    @rule(hold=HOLDS, budget=ANYWHERE, asked=asks())
    def hold(self, hold: str, budget: str, asked: Asked) -> None:
        self.same(lambda store: store.hold(HoldAsk(hold, budget, asked, "node")))

    @rule(hold=HOLDS, asked=asks())
    def enlarge(self, hold: str, asked: Asked) -> None:
        self.same(lambda store: store.enlarge(EnlargeAsk(hold, asked, "dearer")))

    @rule(hold=HOLDS, asked=asks(), correct=st.sampled_from([False, False, True]))
    def settle(self, hold: str, asked: Asked, correct: bool) -> None:
        self.same(lambda store: store.settle(SettleAsk(hold, asked, "why", correct)))

    @rule(hold=HOLDS)
    def release(self, hold: str) -> None:
        self.same(lambda store: store.release(ReleaseAsk(hold, "why")))

    @rule(
        holds=st.lists(HOLDS, unique=True, min_size=4), budgets=st.lists(ANYWHERE, min_size=8, max_size=8), asked=asks()
    )
    def together(self, holds: list[str], budgets: list[str], asked: Asked) -> None:
        """What is asked in one turn is answered as if it were asked one by one, in that order."""

        async def all_of(store: Budgets) -> list[Any]:
            calls: list[Awaitable[Any]] = [
                store.settle(SettleAsk(holds[0], asked)),
                store.release(ReleaseAsk(holds[1])),
            ]
            calls.append(store.enlarge(EnlargeAsk(holds[2], asked)))
            calls += [
                store.hold(HoldAsk(name, budget, asked, "node"))
                for name, budget in zip(holds[3:], budgets, strict=False)
            ]
            answers = await asyncio.gather(*map(answer_of, calls))
            return [_plain(answer) for answer in answers]

        self.same(all_of)

    @rule(
        holds=st.lists(HOLDS, unique=True, min_size=4), settled=st.integers(0, 8), asked=asks(),
        budgets=st.lists(st.sampled_from((*UNLIMITED, *UNLIMITED, "p")), min_size=8, max_size=8),
    )  # fmt: skip
    def unlimited(self, holds: list[str], settled: int, asked: Asked, budgets: list[str]) -> None:
        """Holds and settlements alone, most of them where nothing limits them."""

        async def all_of(store: Budgets) -> list[Any]:
            calls: list[Awaitable[Any]] = [store.settle(SettleAsk(name, asked)) for name in holds[:settled]]
            calls += [
                store.hold(HoldAsk(name, budget, asked, "node"))
                for name, budget in zip(holds[settled:], budgets, strict=False)
            ]
            return [_plain(answer) for answer in await asyncio.gather(*map(answer_of, calls))]

        self.same(all_of)

    @rule(seconds=st.sampled_from([1, 59, 60]))
    def advance(self, seconds: float) -> None:
        self.runner.run(self.ground.advance(seconds))

    def teardown(self) -> None:
        self.runner.run(self.ground.close())
        self.runner.close()


NUMBER = re.compile(r"number=\d+")


def _plain(value: Any) -> str:
    """Without the number of a budget: a table leaves gaps where memory does not. Its order is compared by the list."""
    return NUMBER.sub("", repr(value))


def proven(make: Callable[[], Coroutine[Any, Any, Bench]], examples: int) -> None:
    """Run the machine; a suite that was cut short proves nothing."""
    machine = type("Ledger", (Machine,), {"make": staticmethod(make), "steps": [0]})
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=40))
    assert machine.steps[0] > 8 * examples


def test_postgres_is_the_model(pg_module_url: str) -> None:
    """VER-3, COST-9, COST-11: PostgreSQL answers as the pure ledger over hundreds of random steps, and both are sound
    after each; time is the test's."""

    async def make() -> Bench:
        await emptied(pg_module_url)
        return await bench(pg_module_url)

    proven(make, 25)


def test_memory_is_sound() -> None:
    """COST-11: random histories of the pure ledger never contradict themselves."""
    proven(lambda: bench("memory:"), 60)
