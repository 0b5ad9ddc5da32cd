"""One Run, to those who may see it."""

from libs.faults.fault import Fault
from services.runs.domain.run import Run
from services.runs.ports import Runs


async def find_run(runs: Runs, tenant: str, run_id: str) -> Run:
    """The tenant's Run; another's is not found (AUTH-1)."""
    return owned(await runs.get(run_id), tenant, run_id)


def owned(run: Run | None, tenant: str, run_id: str) -> Run:
    """What was read, if it is that tenant's Run."""
    if run is None or run.tenant != tenant:
        raise unknown(run_id)
    return run


async def seen_run(runs: Runs, tenant: str, run_id: str) -> Run:
    """The Run to look at and no more: the tenant's own, or whoever's for an empty tenant, which is for operators."""
    return seen(await runs.get(run_id), tenant, run_id)


def seen(run: Run | None, tenant: str, run_id: str) -> Run:
    """What was read, if that tenant may look at it; an empty one may look at everybody's."""
    if run is not None and not tenant:
        return run
    return owned(run, tenant, run_id)


async def tenant_of(runs: Runs, run_id: str) -> str:
    """Whose Run it is: for operators, who work for all tenants. Fault not_found."""
    run = await runs.get(run_id)
    if run is None:
        raise unknown(run_id)
    return run.tenant


def unknown(run_id: str) -> Fault:
    """There is no such Run, or it is another tenant's: both in the same words."""
    return Fault.of("not_found", f"run {run_id!r} does not exist")
