"""The one way in which a Run changes: events are folded into it and committed with it and with people's desks."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from libs.faults.fault import Fault
from libs.kernel.world import World
from libs.telemetry import metrics, names
from services.runs.app.hub import Hub
from services.runs.domain.alerting import alerts_of, run_link
from services.runs.domain.desks import desk_changes
from services.runs.domain.history import applied
from services.runs.domain.run import TERMINAL_STATES, Draft, Run
from services.runs.ports import Alerts, Runs

ATTEMPTS = 20
Reading = Callable[[], Awaitable[Run]]
Deciding = Callable[[Run], Sequence[Draft]]


class Recorder:
    """Commits events and tells who waits for them, and operators of what they should know."""

    def __init__(self, runs: Runs, hub: Hub, world: World, alerts: Alerts) -> None:
        self._runs = runs
        self._hub = hub
        self._world = world
        self._alerts = alerts

    async def record(self, run: Run, drafts: Sequence[Draft]) -> Run | None:
        """The Run after these events, committed; None if somebody else was faster (nothing written)."""
        if not drafts:
            return run
        now = self._world.clock.now()
        after = applied(run, drafts, now)
        saved = await self._runs.save(after, drafts, now, desk_changes(run, after, drafts, now))
        if saved is not None:
            self._hub.tell(saved.id, saved.last_sequence)
            if saved.state in TERMINAL_STATES and run.state not in TERMINAL_STATES:
                _count(saved, now)
            for alert in alerts_of(run, drafts):
                await self._alerts.tell(alert, run_link(saved.id))
        return saved


def _count(ended: Run, now: datetime) -> None:
    told = {"model": ended.order.model, "status": ended.state.value}
    metrics.PROCESS.counter(names.RUNS_ENDED, **told).inc()
    metrics.PROCESS.histogram(names.RUN_SECONDS, **told).observe((now - ended.created_at).total_seconds())


async def insist(recorder: Recorder, read: Reading, decide: Deciding) -> Run:
    """Decide on the Run as it stands and commit it; again on the newer one while somebody else is faster.

    Fault revision_conflict after many rounds. `decide` raises a Fault for what cannot be.
    """
    for _ in range(ATTEMPTS):
        run = await read()
        saved = await recorder.record(run, decide(run))
        if saved is not None:
            return saved
    raise Fault.of("revision_conflict", "other writers were in the way each time this was tried")
