"""An operator's word on a Channel or Supply (CAT-5)."""

from libs.faults.fault import Fault
from services.routing.app.catalog_desk import TRIES, CatalogDesk
from services.routing.domain.catalog import Admin
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.catalog_history import ObjectRevision
from services.routing.domain.catalog_plan import plan_admin


async def set_admin_state(
    desk: CatalogDesk, kind: ObjectKind, object_id: str, state: Admin, reason: str = ""
) -> ObjectRevision:
    """The object after it: a new revision if the word is new. It stands until the file changes its own word.

    Faults: `not_found`; `revision_conflict` when others kept changing the catalogue in between.
    """
    key = kind, object_id
    for left in reversed(range(TRIES)):
        before = await desk.store.holdings()
        head = before.heads.get(key)
        if head is None or head.retired:
            raise Fault.of("not_found", f"there is no {kind} {object_id!r} in the catalogue")
        plan = plan_admin(before, key, str(state), reason, desk.clock.now())
        try:
            await desk.commit(before.revision, plan)
        except Fault as fault:
            if fault.code != "revision_conflict" or not left:
                raise
        else:
            return plan.holdings.heads[key]
    raise AssertionError("the last try returns or raises")
