"""Silent Runs are looked at: what should have moved and has not is an alert, and never mended here (RUN-6, OPS-6)."""

from collections.abc import Sequence
from datetime import timedelta

from libs.kernel.world import World
from services.runs.app.plans import Plans
from services.runs.app.remembering import Memory
from services.runs.domain.alerting import run_link, still
from services.runs.domain.run import Run
from services.runs.domain.standing import followed, stuck
from services.runs.domain.waking import wakes_at
from services.runs.ports import Alerts, Routing, Runs

LISTED, BATCH = 1_000, 200


class Standing:
    """One query finds every live Run whose newest event is older than `after`."""

    def __init__(
        self, runs: Runs, routing: Routing, alerts: Alerts, plans: Plans, world: World, after: timedelta
    ) -> None:
        self._runs = runs
        self._routing = routing
        self._alerts = alerts
        self._plans = plans
        self._world = world
        self._after = after
        self._sound = Memory[bool](world.rng)
        """Those that rightly waited when they were looked at."""

    async def look(self) -> None:
        """Tell of every Run that stands still without a reason."""
        now = self._world.clock.now()
        seen: set[str] = set()
        last = ""
        while silent := await self._runs.silent(now - self._after, last, LISTED):
            seen.update(silent)
            unknown = [run_id for run_id, revision in silent.items() if not self._sound.of(run_id, revision, now)]
            for start in range(0, len(unknown), BATCH):
                await self._judge(await self._runs.several(unknown[start : start + BATCH]))
            *_, last = silent
        self._sound.forget_all_but(seen)

    async def _judge(self, runs: Sequence[Run]) -> None:
        now = self._world.clock.now()
        tasks = [task_id for run in runs for task_id in followed(run)]
        known = await self._routing.tasks(tasks) if tasks else {}
        for run in runs:
            plan = self._plans.of(run)
            if why := stuck(plan, run, known, now):
                await self._alerts.tell(still(run.id, why), run_link(run.id))
            else:
                self._sound.keep(run, True, now, wakes_at(plan, run, now))
