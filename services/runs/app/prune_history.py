"""Histories of Runs that ended long ago are forgotten, where an operator wants it so; the Runs themselves stay."""

from datetime import timedelta

from libs.kernel.world import World
from services.runs.ports import Runs

BATCH = 200
ROUNDS = 50


async def prune_history(runs: Runs, world: World, keep: timedelta) -> int:
    """How many Runs have lost their events but the last one. What is left over is for the next look."""
    before = world.clock.now() - keep
    pruned = 0
    for _ in range(ROUNDS):
        now = await runs.prune(before, BATCH)
        pruned += now
        if now < BATCH:
            break
    return pruned
