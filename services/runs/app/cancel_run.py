"""Ask for a Run to end."""

from dataclasses import replace

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.runs.app.find_run import find_run
from services.runs.domain import engine
from services.runs.domain.run import TERMINAL_STATES, Run, RunState
from services.runs.ports import Runs


async def cancel_run(runs: Runs, world: World, tenant: str, run_id: str) -> Run:
    """The Run with its cancel on record; one that was never started ends at once.

    Fault run_terminal for a Run that ended otherwise. Cancelling twice is harmless.
    """
    while True:
        run = await find_run(runs, tenant, run_id)
        if run.state is RunState.CANCELLED or (run.cancel_requested and run.state not in TERMINAL_STATES):
            return run
        if run.state in TERMINAL_STATES:
            raise Fault.of("run_terminal", f"run {run_id} is {run.state} and cannot be cancelled")
        now = world.clock.now()
        after, drafts = engine.cancelled_before_start(replace(run, cancel_requested=True), now)
        saved = await runs.save(after, drafts, now)
        if saved is not None:
            return saved
