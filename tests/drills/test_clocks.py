"""The clock of one machine, or of all, is stepped in the middle of a burst, further than every lease and time limit."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from tests.drills.test_frozen import brisk
from tests.e2e.drilling import TwoDispatchers, burst, judged
from tests.support import stepping
from tests.support.stack import running
from tests.support.visitor import until

STEP_S = 20
"""More than the worker's lease, the slots' time to live, and what a submission is waited for with the time after which
the records' silence counts."""
BURST = 32
EVERYBODY = TwoDispatchers.members


class Stepping(TwoDispatchers):
    """Every process has a clock that can be stepped."""

    def _spawn(self, name: str, arguments: list[str], env: Mapping[str, str]) -> None:
        if arguments[:2] == ["-m", "services"]:
            arguments = ["-m", stepping.__name__, *arguments[2:]]
            env = {**env, stepping.VARIABLE: str(self._step_of(name))}
        super()._spawn(name, arguments, env)

    def step(self, seconds: float, members: tuple[str, ...]) -> None:
        """Put their clocks forward, or back."""
        for member in members:
            new = self._step_of(member).with_suffix(".new")
            new.write_text(str(seconds))
            new.rename(self._step_of(member))

    def _step_of(self, member: str) -> Path:
        return self.folder / f"{member}.step"


@pytest.fixture
async def stack() -> AsyncIterator[Stepping]:
    """A stack whose clocks this test may step."""
    async with running(Stepping, brisk()) as stack, stack.visit():
        assert isinstance(stack, Stepping)
        yield stack


@pytest.mark.parametrize("members", [("routing-1",), EVERYBODY], ids=["one-dispatcher", "everybody"])
@pytest.mark.parametrize("seconds", [STEP_S, -STEP_S], ids=["forward", "back"])
async def test_clocks_are_stepped(stack: Stepping, seconds: float, members: tuple[str, ...]) -> None:
    """VER-6, ATT-5, ATT-7, CAP-3, VER-7: forward or back, on one machine or on all: each Run ends once, nothing is sent
    twice, no slot is kept, nobody is called for what is only late."""
    coming = asyncio.ensure_future(burst(stack, "stepped", BURST))
    await until(stack.lab.submissions, lambda jobs: len(jobs) >= BURST // 8, 60)
    stack.step(seconds, members)

    async def stepped() -> bool:
        return stack.told("routing-1", f"the clock steps by {seconds:g} s") > 0

    await until(stepped, bool)
    await judged(stack, await coming)
