"""Numbers for new events: the next ones of their Run, without a gap (EVENT-1)."""

from collections.abc import Callable, Sequence
from datetime import datetime

from libs.kernel.canonical import plain
from services.runs.domain.run import Draft, Event, Run


def number(run: Run, drafts: Sequence[Draft], new_id: Callable[[], str], now: datetime) -> list[Event]:
    """The drafts as events of `run`, the first one after its last sequence."""
    return [
        Event(new_id(), run.id, run.last_sequence + offset, draft.kind, plain(draft.data), now)
        for offset, draft in enumerate(drafts, start=1)
    ]
