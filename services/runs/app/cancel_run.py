"""Ask for a Run to end."""

from dataclasses import replace

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.runs.app.find_run import find_run
from services.runs.domain.run import TERMINAL_STATES, Run, RunState
from services.runs.ports import Runs


async def cancel_run(runs: Runs, world: World, tenant: str, run_id: str) -> Run:
    """The Run with its cancel on record; the ticks carry it out.

    A pending Run is not ended here: its Task may be on its way to routing, and would be served and paid for with nobody
    left to cancel it. Fault run_terminal for a Run that ended otherwise. Cancelling twice is harmless.
    """
    while True:
        run = await find_run(runs, tenant, run_id)
        if run.state is RunState.CANCELLED or (run.cancel_requested and run.state not in TERMINAL_STATES):
            return run
        if run.state in TERMINAL_STATES:
            raise Fault.of("run_terminal", f"run {run_id} is {run.state} and cannot be cancelled")
        saved = await runs.save(replace(run, cancel_requested=True), (), world.clock.now())
        if saved is not None:
            return saved
