"""One call for those who ask, with the reasons of its choices."""

from collections.abc import Sequence

from msgspec.structs import replace

from libs.faults.fault import Fault
from services.routing.app.calls.call_desk import CallDesk
from services.routing.domain.calls.call import Call
from services.routing.domain.rounds import SelectionRound
from services.routing.domain.selection_record import recorded_revision, whole_text


async def read_call(desk: CallDesk, call_id: str, tenant: str = "") -> tuple[Call, Sequence[SelectionRound]]:
    """The call, and its rounds oldest first. Fault `not_found`, in the same words for a foreign and a missing one."""
    found = await desk.store.get(call_id)
    if found is None or (tenant and found[0].tenant != tenant):
        raise Fault.of("not_found", f"call {call_id!r} does not exist")
    call, rounds = found
    return call, [await _whole(desk, item) for item in rounds]


async def _whole(desk: CallDesk, kept: SelectionRound) -> SelectionRound:
    catalog = await desk.catalog.at(recorded_revision(kept.record))
    return replace(kept, record=whole_text(kept.record, catalog))
