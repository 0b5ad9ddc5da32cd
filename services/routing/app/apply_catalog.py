"""Applies a catalogue file: read, compare, gate, commit; all or nothing (CAT-1, CAT-3)."""

from libs.faults.fault import Fault
from services.routing.app.catalog_desk import TRIES, CatalogDesk
from services.routing.app.read_catalog_file import checked_file, declared_catalog
from services.routing.domain.catalog_plan import Plan, plan_apply


async def plan_catalog(desk: CatalogDesk, text: str, merge: bool) -> tuple[int, Plan]:
    """(the revision it starts from, what applying would do). Faults as `apply_catalog`; writes nothing."""
    before = await desk.store.holdings()
    file, around = await checked_file(desk, text, declared_catalog(before, merge))
    return before.revision, plan_apply(before, file, merge, around, desk.clock.now())


async def apply_catalog(desk: CatalogDesk, text: str, merge: bool) -> Plan:
    """Put a file in force.

    Faults: `catalog_invalid` with every fault by its path, and nothing is changed; `revision_conflict` when others
    kept changing the catalogue in between.
    """
    for left in reversed(range(TRIES)):
        base, plan = await plan_catalog(desk, text, merge)
        try:
            await desk.commit(base, plan)
        except Fault as fault:
            if fault.code != "revision_conflict" or not left:
                raise
        else:
            return plan
    raise AssertionError("the last try returns or raises")
