"""One Run as it is now, with the reason for which its node waits at this moment."""

from dataclasses import replace

from libs.faults.fault import Fault
from services.runs.app.find_run import seen_run
from services.runs.domain.plan import MAIN
from services.runs.domain.run import NodeState, Run
from services.runs.ports import Routing, Runs


async def read_run(runs: Runs, routing: Routing, tenant: str, run_id: str) -> Run:
    """The tenant's Run, or whoever's for an empty tenant; another's is not found (AUTH-1).

    Routing does not tell each change of a reason that many share, so it is asked (ATT-10). While it is away, the reason
    that it told last stands.
    """
    run = await seen_run(runs, tenant, run_id)
    node = run.nodes.get(MAIN) if run.production is None else None
    if node is None or not node.waiting_reason or node.state is not NodeState.RUNNING:
        return run
    try:
        reason = await routing.waiting_reason(node.task_id)
    except Fault:
        return run
    return replace(run, nodes={MAIN: replace(node, waiting_reason=reason)}) if reason else run
