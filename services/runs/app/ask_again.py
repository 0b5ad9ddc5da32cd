"""What a level of a budget refused asks again once there is room, whoever made it: another Run whose Hold was settled,
an operator who raised the limit, a provider's refund (COST-9, COST-10, HUMAN-2).

Nobody tells a Run of it, so levels are looked at: each once for all that wait there, while something waits. What a Run
waits for is remembered for as long as nobody writes it; the Run itself is read when there is room.
"""

import logging
from collections.abc import Mapping

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.runs.app.recording import Recorder
from services.runs.app.remembering import Memory
from services.runs.domain.room import Levels, Waits, any_fits, freed, waits
from services.runs.domain.run import RunState
from services.runs.ports import Budgets, Runs

LISTED, BATCH = 1_000, 200

log = logging.getLogger(__name__)


class AskAgain:
    """The tick over one store."""

    def __init__(self, runs: Runs, budgets: Budgets, recorder: Recorder, world: World) -> None:
        self._runs = runs
        self._budgets = budgets
        self._recorder = recorder
        self._world = world
        self._known = Memory[Waits](world.rng)

    async def look(self) -> None:
        """Let those ask again for whom there is room, the oldest Run first. What cannot be read is read next time."""
        levels: Levels = {}
        missing: set[str] = set()
        waiting: dict[str, Waits] = {}
        after = ""
        while revisions := await self._runs.revisions([RunState.RUNNING], after, LISTED, productions=True):
            waiting |= await self._waiting(revisions)
            *_, after = revisions
        self._known.forget_all_but(waiting)
        for run_id, wanted in waiting.items():
            for name in dict.fromkeys(want.level for want in wanted):
                if name not in levels and name not in missing:
                    levels = await self._read(name, levels, missing)
            if any_fits(wanted, levels, self._world.clock.now()):
                levels = await self._let_ask(run_id, levels)

    async def _waiting(self, revisions: Mapping[str, int]) -> dict[str, Waits]:
        """What each Run waits for; those that were written since are read."""
        now = self._world.clock.now()
        known = {run_id: self._known.of(run_id, revision, now) for run_id, revision in revisions.items()}
        unknown = [run_id for run_id, wanted in known.items() if wanted is None]
        for start in range(0, len(unknown), BATCH):
            for run in await self._runs.several(unknown[start : start + BATCH]):
                known[run.id] = waits(run)
                self._known.keep(run, waits(run), now)
        return {run_id: wanted or () for run_id, wanted in known.items()}

    async def _let_ask(self, run_id: str, levels: Levels) -> Levels:
        """The levels with what those of the Run will take for whom there is room."""
        run = await self._runs.get(run_id)
        if run is None:
            return levels
        drafts, left = freed(run, levels, self._world.clock.now())
        # Where somebody was faster the room is offered to the others, and to this Run at the next look.
        return left if drafts and await self._recorder.record(run, drafts) is not None else levels

    async def _read(self, name: str, levels: Levels, missing: set[str]) -> Levels:
        try:
            return {**levels, name: await self._budgets.level(name)}
        except Fault as fault:
            missing.add(name)
            log.warning("level_not_read", extra={"budget_id": name, "code": fault.code})
            return levels
