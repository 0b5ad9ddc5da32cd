"""Silent Runs are looked at: what should have moved and has not is an alert, and never mended here (RUN-6, OPS-6)."""

from datetime import timedelta

from libs.kernel.world import World
from services.runs.app.plans import Plans
from services.runs.domain.alerting import run_link, still
from services.runs.domain.standing import followed, stuck
from services.runs.ports import Alerts, Routing, Runs

BATCH = 200


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
                    await self._alerts.tell(still(run.id, why), run_link(run.id))
            last = silent[-1].id
