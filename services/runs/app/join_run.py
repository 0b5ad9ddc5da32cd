"""Wait until a Run is at rest."""

import asyncio

from libs.faults.fault import Fault
from services.runs.app.find_run import owned
from services.runs.app.hub import Hub
from services.runs.domain.run import RESTING_STATES, Run


async def join_run(hub: Hub, tenant: str, run_id: str, timeout_s: float) -> Run:
    """The Run, terminal or paused. Fault join_timeout after `timeout_s` seconds; the Run goes on."""
    try:
        with hub.watching(run_id):
            run = owned(await hub.readings.run(run_id), tenant, run_id)  # whose it is, before how long it may take
            async with asyncio.timeout(timeout_s):
                while run.state not in RESTING_STATES:
                    await hub.wait(run_id, run.last_sequence)
                    _, found = await hub.readings.after(run_id, run.last_sequence)
                    run = owned(found, tenant, run_id)
                return run
    except TimeoutError:
        raise Fault.of("join_timeout", f"run {run_id} is not at rest after {timeout_s:g} s; it goes on") from None
