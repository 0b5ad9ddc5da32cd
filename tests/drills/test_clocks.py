"""The clock of one machine, or of all, or the database's, is stepped by an hour in the middle of a burst."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import asyncpg
import pytest
import yaml

from tests.drills.test_frozen import brisk
from tests.e2e.drilling import TwoDispatchers, burst, judged
from tests.support import stepping
from tests.support.stack import Setting, running
from tests.support.visitor import until

STEP_S = 3600
BURST = 32
EVERYBODY = TwoDispatchers.members
SUBMIT_S = 30
SLOW_S = 25
"""A provider takes its time over every job: longer than new dispatchers need to begin, to take over what is under way,
and to look at its records for the first time."""
LOOKED_FOR = "SELECT id FROM routing.attempts WHERE reconcile_count > 0"
UNDER_WAY = "SELECT id FROM routing.attempts WHERE state = 'submitting'"
WAVE = 16
"""Jobs that are sent at once."""


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

    async def step_database(self, seconds: float) -> None:
        """Put the clock of the database's machine forward, or back."""
        connection = await asyncpg.connect(self._postgres.url)
        try:
            time = f"clock_timestamp() + interval '{seconds} s'"
            await stepping.step_database(connection, time)
        finally:
            await connection.close()

    async def restart(self, *members: str) -> None:
        """kill -9 of these, and new ones in their place; returns when those are ready."""
        self.kill_members(*members)
        await self._appears({member: self._start_member(member) for member in members})

    def _step_of(self, member: str) -> Path:
        return self.folder / f"{member}.step"


def patient() -> Setting:
    """The scenery of drills, in which nothing ends an hour too early because an hour is over."""
    usual = brisk()

    def catalog(studio: str) -> str:
        declared = yaml.safe_load(usual.catalog(studio))
        for channel in declared["channels"]:
            channel["timeouts"]["submit_s"] = SUBMIT_S
        for policy in declared["policies"]:
            policy |= {"new_attempt_window_s": 3 * STEP_S, "uncertain_deadline_s": 3 * STEP_S}
        return yaml.safe_dump(declared, sort_keys=False)

    return replace(usual, catalog=catalog)


@pytest.fixture
async def stack(request: pytest.FixtureRequest) -> AsyncIterator[Stepping]:
    """A stack whose clocks this test may step."""
    async with running(Stepping, getattr(request, "param", brisk)()) as stack, stack.visit():
        assert isinstance(stack, Stepping)
        yield stack


@pytest.mark.parametrize("members", [("routing-1",), EVERYBODY], ids=["one-dispatcher", "everybody"])
@pytest.mark.parametrize("seconds", [STEP_S, -STEP_S], ids=["forward", "back"])
async def test_clocks_are_stepped(stack: Stepping, seconds: float, members: tuple[str, ...]) -> None:
    """VER-6, ATT-3, ATT-5, ATT-7, CAP-3, VER-7: forward or back, on one machine or on all: each Run ends once and well,
    nothing is sent twice, no slot is kept, nobody is called. A process that begins after it goes by the same time."""
    coming = asyncio.ensure_future(burst(stack, "stepped", BURST))
    await until(stack.lab.submissions, lambda jobs: len(jobs) >= BURST // 8, 60)
    stack.step(seconds, members)

    async def stepped() -> bool:
        return stack.told("routing-1", f"the clock steps by {seconds:g} s") > 0

    await until(stepped, bool)
    await stack.restart_context("routing-1")
    await judged(stack, await coming)


@pytest.mark.parametrize("stack", [patient], indirect=True, ids=["slow"])
@pytest.mark.parametrize("seconds", [STEP_S, -STEP_S], ids=["forward", "back"])
async def test_every_clock_is_stepped(stack: Stepping, seconds: float) -> None:
    """VER-6, ATT-5, ATT-6, ATT-7, VER-7: those of the machines and the database's, while a slow provider has not yet
    listed what is on its way there; and the dispatchers are killed. Those that begin find that every claim has lapsed
    for an hour, or go on where time was when it was put back: they look for what was sent, and nothing is sent twice,
    no slot is kept, nobody is called, each Run ends once and well."""
    for part in ("five", "eight", "three"):
        await stack.lab.script(part, {"slow_s": SLOW_S}, repeat="forever")
    coming = asyncio.ensure_future(burst(stack, "stepped", WAVE))
    await until(partial(stack.rows, UNDER_WAY), lambda sent: len(sent) >= WAVE // 2, 60)
    stack.step(seconds, EVERYBODY)
    await stack.step_database(seconds)
    await stack.restart("routing-1", "routing-2")
    await judged(stack, await coming)
    assert len(await stack.rows(LOOKED_FOR)) >= WAVE // 2
