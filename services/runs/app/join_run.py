"""Wait until a Run is at rest."""

import asyncio

from libs.faults.fault import Fault
from services.runs.app.find_run import find_run
from services.runs.app.hub import Hub
from services.runs.domain.run import RESTING_STATES, Run
from services.runs.ports import Runs


async def join_run(runs: Runs, hub: Hub, tenant: str, run_id: str, timeout_s: float) -> Run:
    """The Run, terminal or paused. Fault join_timeout after `timeout_s` seconds; the Run goes on."""
    try:
        with hub.watching(run_id):
            async with asyncio.timeout(timeout_s):
                while True:
                    run = await find_run(runs, tenant, run_id)
                    if run.state in RESTING_STATES:
                        return run
                    await hub.wait(run_id, run.last_sequence)
    except TimeoutError:
        raise Fault.of("join_timeout", f"run {run_id} is not at rest after {timeout_s:g} s; it goes on") from None
