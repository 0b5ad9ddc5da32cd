"""How well productions go: measured on request, shown as metrics, and told when a model does worse (SLO-1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from libs.kernel.world import World
from libs.telemetry import names
from libs.telemetry.metrics import Metrics
from services.runs.domain import alerting
from services.runs.domain.history import rebuilt, state_hash
from services.runs.domain.run import TERMINAL_KINDS, Event
from services.runs.domain.service_levels import KINDS, Figures, Outcome, service_levels
from services.runs.domain.trends import worsened
from services.runs.ports import Alerts, Runs

LINK = "/v1/operator/slo"
MOST_RUNS = 1_000
MOST_EVENTS = 100_000
"""A production alone may have some ten thousand, and all are in memory at once."""
WATCHED = timedelta(hours=24)
REBUILT = 20
LONGEST_HISTORY = 100_000
RATIOS = ("success_rate", "first_pass_yield", "retry_rate")
TIMES = ("queue_time_s", "review_wait_s", "stale_propagation_s")


@dataclass(frozen=True, slots=True)
class Levels:
    """Figures by model ("" = of all) of Runs created since then; of the newest ended ones, how many were rebuilt from
    their events as they stand."""

    since: datetime
    figures: Mapping[str, Figures]
    outcomes: Sequence[Outcome]
    rebuilt: int
    checked: int


class Measure:
    """Reads at most the newest `MOST_RUNS` Runs, and no further back than `MOST_EVENTS` events."""

    def __init__(self, runs: Runs, alerts: Alerts, world: World, metrics: Metrics) -> None:
        self._runs = runs
        self._alerts = alerts
        self._world = world
        self._metrics = metrics

    async def levels(self, window: timedelta) -> Levels:
        """The figures of that time up to now."""
        since = self._world.clock.now() - window
        histories = await self._runs.histories(since, KINDS, MOST_RUNS, MOST_EVENTS)
        figures, outcomes = service_levels(histories)
        ended = [events[0].run_id for events in histories if events[-1].kind in TERMINAL_KINDS.values()]
        newest = ended[-REBUILT:]
        sound = [await self._rebuilds(run_id) for run_id in newest]
        return Levels(since, figures, outcomes, sum(sound), len(sound))

    async def watch(self) -> None:
        """Show the figures of the last day, and tell of what has gone bad."""
        levels = await self.levels(WATCHED)
        self._show(levels)
        for change in worsened(levels.outcomes):
            await self._alerts.tell(alerting.worse(change), LINK)
        if levels.rebuilt < levels.checked:
            await self._alerts.tell(alerting.not_rebuilt(levels.checked - levels.rebuilt, levels.checked), LINK)

    async def _rebuilds(self, run_id: str) -> bool:
        run = await self._runs.get(run_id)
        if run is None:
            return False
        events: list[Event] = await self._runs.events(run_id, 0, LONGEST_HISTORY)
        if not events or events[0].sequence != 1:
            return True  # pruned since: nothing is left to be compared
        try:
            return state_hash(rebuilt(events[: run.last_sequence])) == state_hash(run)
        except (ValueError, LookupError):
            return False

    def _show(self, levels: Levels) -> None:
        for metric in (names.SLO_RATIO, names.SLO_SECONDS, names.SLO_COST):
            self._metrics.clear(metric)
        for model, figures in levels.figures.items():
            for name in RATIOS:
                if (value := getattr(figures, name)) is not None:
                    self._metrics.gauge(names.SLO_RATIO, figure=name, model=model).set(value)
            for name in TIMES:
                if (value := getattr(figures, name)) is not None:
                    self._metrics.gauge(names.SLO_SECONDS, figure=name.removesuffix("_s"), model=model).set(value)
            for currency, cost in figures.cost_per_usable_second.items():
                self._metrics.gauge(names.SLO_COST, model=model, currency=currency).set(float(cost))
        if levels.checked:
            share = levels.rebuilt / levels.checked
            self._metrics.gauge(names.SLO_RATIO, figure="rebuild_success", model="").set(share)
