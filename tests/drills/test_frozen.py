"""SIGSTOP of each context in the middle of a burst, for longer than every lease and time limit; then SIGCONT."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import yaml

from tests.e2e.drilling import QUICK, TwoDispatchers, burst, judged
from tests.e2e.scenery import setting
from tests.support.stack import Setting, running
from tests.support.visitor import until

FROZEN_S = 12.0
"""More than the worker's lease (4.5), the slots' time to live (6), and what a submission is waited for (2 + 3) with the
time (2) after which the records' silence counts."""
BURST = 32
MEMBERS = ("health", "cost_quote", "capacity", "provider_adapter", "routing-1", "runs", "edge")


def brisk() -> Setting:
    """The scenery with Channels that do not wait long for an answer."""
    usual = setting(**QUICK)

    def catalog(studio: str) -> str:
        declared = yaml.safe_load(usual.catalog(studio))
        for channel in declared["channels"]:
            channel["timeouts"] = {"submit_s": 2, "poll_s": 2}
        return yaml.safe_dump(declared, sort_keys=False)

    return replace(usual, catalog=catalog)


@pytest.fixture
async def stack() -> AsyncIterator[TwoDispatchers]:
    """A stack whose processes this test may harm."""
    async with running(TwoDispatchers, brisk()) as stack, stack.visit():
        assert isinstance(stack, TwoDispatchers)
        yield stack


@pytest.mark.parametrize("member", MEMBERS)
async def test_a_context_stands_still(stack: TwoDispatchers, member: str) -> None:
    """VER-6, ATT-5, ATT-7, CAP-3, VER-7: whoever stands still, and for how long: each Run ends once, nothing is sent
    twice by those who go on nor by who comes back, no slot is kept."""
    coming = asyncio.ensure_future(burst(stack, "frozen", BURST))
    await until(stack.lab.submissions, lambda jobs: len(jobs) >= BURST // 8, 60)
    async with stack.frozen(member):
        await asyncio.sleep(FROZEN_S)  # the time is the drill
    await judged(stack, await coming)
