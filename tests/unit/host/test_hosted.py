"""A context composed of its parts."""

import asyncio
import random

import pytest

from libs.host.hosted import ComposedContext
from libs.host.ticker import Ticker
from libs.host.world import RealClock, RisingUlids
from libs.kernel.world import World


async def test_parts_run_in_order() -> None:
    """OPS-4: tickers start after `begin`, and have ended before `finish` closes what they use."""
    story: list[str] = []
    ticked = asyncio.Event()

    async def tick() -> None:
        story.append("tick")
        ticked.set()

    def note(word: str):
        async def step() -> None:
            story.append(word)

        return step

    world = World(clock=RealClock(), ids=RisingUlids(), rng=random.Random(1))
    context = ComposedContext(
        name="toy",
        migration=note("migrate"),
        begin=(note("begin"),),
        tickers=(Ticker("toy", tick, world=world, interval_s=3600),),
        finish=(note("drain"), note("close")),
    )
    await context.migrate()
    await context.start()
    await ticked.wait()
    await context.stop()
    assert story == ["migrate", "begin", "tick", "drain", "close"]


async def test_one_part_that_cannot_close_does_not_keep_the_others_open() -> None:
    """Every finish runs, and the failure is told."""
    story: list[str] = []

    async def broken() -> None:
        raise OSError("gone")

    async def close() -> None:
        story.append("closed")

    context = ComposedContext(name="toy", finish=(broken, close))
    with pytest.raises(ExceptionGroup):
        await context.stop()
    assert story == ["closed"]
