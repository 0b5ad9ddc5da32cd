"""What a level of a budget refused asks again once there is room, whoever made it: another Run whose Hold was settled,
an operator who raised the limit, a provider's refund (COST-9, COST-10, HUMAN-2).

Nobody tells a Run of it, so levels are looked at: each once for all that wait there, while something waits.
"""

import logging

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.runs.app.recording import Recorder
from services.runs.domain.room import Levels, freed, waited_for
from services.runs.domain.run import RunState
from services.runs.ports import Budgets, Runs

BATCH = 200

log = logging.getLogger(__name__)


class AskAgain:
    """The tick over one store."""

    def __init__(self, runs: Runs, budgets: Budgets, recorder: Recorder, world: World) -> None:
        self._runs = runs
        self._budgets = budgets
        self._recorder = recorder
        self._world = world

    async def look(self) -> None:
        """Let those ask again for whom there is room, the oldest Run first. What cannot be read is read next time."""
        levels: Levels = {}
        missing: set[str] = set()
        after = ""
        while batch := await self._runs.live([RunState.RUNNING], after, BATCH, productions=True):
            for run in batch:
                for name in waited_for(run):
                    if name not in levels and name not in missing:
                        levels = await self._read(name, levels, missing)
                drafts, left = freed(run, levels, self._world.clock.now())
                # Where somebody was faster the room is offered to the others, and to this Run at the next look.
                if drafts and await self._recorder.record(run, drafts) is not None:
                    levels = left
            after = batch[-1].id

    async def _read(self, name: str, levels: Levels, missing: set[str]) -> Levels:
        try:
            return {**levels, name: await self._budgets.level(name)}
        except Fault as fault:
            missing.add(name)
            log.warning("level_not_read", extra={"budget_id": name, "code": fault.code})
            return levels
