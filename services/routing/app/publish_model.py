"""Opens a model to callers, if it passes the gate (CAT-3)."""

from libs.faults.fault import Fault, FieldError
from services.routing.app.catalog_desk import TRIES, CatalogDesk
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.catalog_plan import plan_publish
from services.routing.domain.publication import Standing


async def publish_model(desk: CatalogDesk, model_id: str) -> Standing:
    """The model's standing: open.

    Faults: `not_found`; `catalog_not_publishable` with every reason by its path; `revision_conflict`.
    """
    for left in reversed(range(TRIES)):
        before = await desk.store.holdings()
        head = before.heads.get((ObjectKind.MODEL, model_id))
        if head is None or head.retired:
            raise Fault.of("not_found", f"there is no model {model_id!r} in the catalogue")
        around = await desk.around(before.catalog())
        plan, standing = plan_publish(before, model_id, around, desk.clock.now())
        if not standing.published:
            raise _refused(standing)
        try:
            await desk.commit(before.revision, plan)
        except Fault as fault:
            if fault.code != "revision_conflict" or not left:
                raise
        else:
            return standing
    raise AssertionError("the last try returns or raises")


def _refused(standing: Standing) -> Fault:
    errors = tuple(FieldError(path, reason) for path, reason in standing.reasons)
    return Fault.of("catalog_not_publishable", "\n".join(standing.words()), errors=errors)
