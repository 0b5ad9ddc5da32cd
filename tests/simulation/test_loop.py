"""The loop that every world stands on: virtual time, and processes that die and stand still."""

import asyncio
import random

import pytest

from tests.simulation.loop import Owner, Stalled, VirtualLoop


def loop_of(shuffle: float = 0.0) -> VirtualLoop:
    """A loop of seed 1."""
    return VirtualLoop(random.Random(1), shuffle)


def test_an_hour_passes_at_once() -> None:
    """VER-4: time jumps to the next timer when nothing is ready; timeouts of asyncio follow it."""
    loop = loop_of()

    async def wait() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.sleep(7200)
        return loop.time()

    assert loop.run(wait()) == 3600
    loop.close()


def test_nothing_to_wait_for_is_told() -> None:
    """VER-4: a deadlock ends the world with its reason instead of hanging it."""
    loop = loop_of()

    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stalled):
        loop.run(wait())
    loop.close()


def test_a_dead_process_runs_no_finally() -> None:
    """VER-4: a kill leaves no line of the process running; a pause delays all of them, in their order."""
    loop, dead, paused = loop_of(), Owner("dead"), Owner("paused")
    told: list[str] = []

    async def work(name: str) -> None:
        try:
            await asyncio.sleep(1.0)
            told.append(f"{name} worked at {loop.time():g}")
        finally:
            told.append(f"{name} tidied")

    async def world() -> None:
        for owner in (dead, paused):
            loop.call_soon(lambda owner=owner: loop.create_task(work(owner.name)), context=owner.context.copy())
        await asyncio.sleep(0.5)
        dead.dead = paused.paused = True
        await asyncio.sleep(5.0)
        assert told == []
        loop.wake(paused)
        await asyncio.sleep(0.1)

    loop.run(world())
    assert told == ["paused worked at 5.5", "paused tidied"]
    loop.close()


def test_the_order_of_what_is_ready_follows_the_seed() -> None:
    """VER-4: shuffled callbacks come in another order than they were scheduled, and in the same one every time."""

    def orders() -> list[int]:
        loop, seen = loop_of(1.0), []

        async def world() -> None:
            for number in range(12):
                loop.call_soon(seen.append, number)
            await asyncio.sleep(1.0)

        loop.run(world())
        loop.close()
        return seen

    assert orders() == orders()
    assert orders() != list(range(12))
    assert sorted(orders()) == list(range(12))
