"""The snapshot now, and what changed since, for as long as the watcher stays."""

from collections.abc import AsyncGenerator

from libs.kernel.clock import Clock
from services.health.app.changes import Changes, heard_within
from services.health.app.snapshot import GetSnapshot, Snapshot, View
from services.health.domain.subjects import Subject


class WatchSnapshot:
    """Looks at the store when this process rang, and every `poll_s` seconds for what other processes did."""

    def __init__(self, snapshot: GetSnapshot, clock: Clock, changes: Changes, poll_s: float) -> None:
        self._snapshot = snapshot
        self._clock = clock
        self._changes = changes
        self._poll_s = poll_s

    async def __call__(self) -> AsyncGenerator[Snapshot, None]:
        """Everything first, then only changed subjects. Changes between two looks are told as one."""
        seen: dict[Subject, object] = {}
        first = True
        with self._changes.listener() as heard:
            while True:
                now = await self._snapshot()
                changed = tuple(view for view in now.views if seen.get(view.subject) != _visible(view))
                if changed or first:
                    yield Snapshot(changed, now.taken_at)
                seen = {view.subject: _visible(view) for view in now.views}
                first = False
                await heard_within(heard, self._poll_s, self._clock)


def _visible(view: View) -> object:
    """What a watcher can see of a view; counts below it may change in silence."""
    return view.breaker.health, view.breaker.configured, view.rates
