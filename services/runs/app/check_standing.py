"""Silent Runs are looked at: what should have moved and has not is an alert, and never mended here (RUN-6, OPS-6)."""

import logging
from datetime import timedelta

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.runs.app.plans import Plans
from services.runs.domain.standing import followed, stuck
from services.runs.ports import Alerts, Routing, Runs

BATCH = 200

log = logging.getLogger(__name__)


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

    async def look(self) -> None:
        """Tell of every Run that stands still without a reason."""
        now = self._world.clock.now()
        last = ""
        while silent := await self._runs.silent(now - self._after, last, BATCH):
            tasks = [task_id for run in silent for task_id in followed(run)]
            known = await self._routing.tasks(tasks) if tasks else {}
            for run in silent:
                if why := stuck(self._plans.of(run), run, known, now):
                    await self._tell(run.id, why)
            last = silent[-1].id

    async def _tell(self, run_id: str, why: str) -> None:
        try:
            await self._alerts.tell("stuck_state", "high", run_id, f"run {run_id}: {why}", why, f"/v1/runs/{run_id}")
        except Fault as fault:
            log.warning("run_call_failed", extra={"run_id": run_id, "code": fault.code})
