"""A Run's events in order, those on record and those to come."""

from collections.abc import AsyncIterator, Sequence

from libs.faults.fault import Fault
from services.runs.app.find_run import seen, seen_run
from services.runs.app.hub import Hub
from services.runs.domain.run import RESTING_STATES, Event
from services.runs.ports import Runs


async def list_events(runs: Runs, tenant: str, run_id: str, after: int, size: int) -> Sequence[Event]:
    """Events above `after`, at most `size`. Faults (SSE-5): malformed_request for a cursor that lies ahead;
    history_pruned for one before what is kept."""
    run = await seen_run(runs, tenant, run_id)
    _check_cursor(after, run.last_sequence)
    return _unbroken(await runs.events(run_id, after, size), after)


async def stream_events(hub: Hub, tenant: str, run_id: str, after: int) -> AsyncIterator[Sequence[Event]]:
    """Batches without gap or repetition, until the Run is at rest and all was told.

    Holds no connection between batches (SSE-4): each read is a short one, shared with other streams at this cursor.
    """
    with hub.watching(run_id):
        run = seen(await hub.readings.run(run_id), tenant, run_id)
        _check_cursor(after, run.last_sequence)
        while True:
            batch, found = await hub.readings.after(run_id, after)
            if batch:
                yield _unbroken(batch, after)
                after = batch[-1].sequence
            run = seen(found, tenant, run_id)
            if run.last_sequence > after:
                continue
            if run.state in RESTING_STATES:
                return
            await hub.wait(run_id, after)


def _unbroken(events: Sequence[Event], after: int) -> Sequence[Event]:
    """Sequences rise by 1 (EVENT-1): where the next one is not there, it is no longer kept."""
    if events and events[0].sequence != after + 1:
        earliest = events[0].sequence
        raise Fault.of("history_pruned", f"events before {earliest} are pruned", metadata={"earliest": str(earliest)})
    return events


def _check_cursor(after: int, last: int) -> None:
    if not 0 <= after <= last:
        raise Fault.of("malformed_request", f"cursor {after} lies ahead of the newest event, {last}")
