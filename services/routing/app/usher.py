"""Calls parked Tasks to look again: whoever waits for what comes for many at once does not look for itself.

Every look costs a decision. With a million Tasks waiting for sixteen slots only the heads of the lines need look, every
`waiting_look_s`, whoever of the replicas comes by: the first few of each group that was decided alike (CAP-10), and in
turn the first few of each line: nobody is hidden by who waits for what others do not need (CAP-11). That is the durable
scan, and alone it is enough. Hints make it sooner: a slot that is given back, a circuit that closes, and a waiting Task
that was placed each call one more, so that a line moves as fast as places come free: of each group that this process
has seen wait the line whose turn it is (`domain.shares`), else whoever has waited longest.
"""

from collections.abc import Callable
from datetime import timedelta

from libs.kernel.clock import Clock
from services.routing.domain.fairness import CLASS_WEIGHTS, class_of
from services.routing.domain.shares import Line as Share
from services.routing.domain.shares import Shares
from services.routing.domain.task import Task
from services.routing.ports.waking import Line, Pick, Waking
from services.routing.settings import SPARED

FRONT = 4
MOST = 64
MOST_GROUPS = 64
"""Groups that a hint is tried on."""
MOST_LINES = 256
"""Lines that are remembered of a group."""
CLASSES = tuple(CLASS_WEIGHTS)

Group = tuple[str, str]
"""(model, last decision)."""


class Usher:
    """Of one process. `tick` is called every `look_s` and after a hint."""

    def __init__(self, store: Waking, clock: Clock, look_s: float) -> None:
        self._store = store
        self._clock = clock
        self._look_s = look_s
        self._looked_at: float | None = None
        self._places = 0
        self._line: Line | None = None
        """Where the round of the lines has come to."""
        self.shares = Shares()
        """What this process has placed."""
        self._groups: dict[Group, set[Share]] = {}
        """Lines that this process has seen wait, those of late last."""
        self._waiting = True
        """Whether anybody may be parked; without, a hint asks nobody."""
        self.on_hint: Callable[[], None] | None = None
        """Called to have `tick` called sooner; without, hints are dropped."""
        self.on_woken: Callable[[], None] | None = None

    def freed(self, places: int = 1) -> None:
        """A hint: so many may find a place now."""
        if self._waiting and self.on_hint is not None:
            self._places += places
            self.on_hint()

    def parked(self, task: Task) -> None:
        """A Task of this process waits from now on."""
        self._waiting = True
        asked = task.request
        group = (asked.model, task.round_key)
        lines = self._groups[group] = self._groups.pop(group, set())
        if len(lines) < MOST_LINES:
            lines.add((asked.tenant, asked.model, class_of(asked)))
        if len(self._groups) > MOST_GROUPS:
            del self._groups[next(iter(self._groups))]

    async def tick(self) -> None:
        """Wake whom the hints are for, and the heads of the lines when it is time."""
        now, places = self._clock.now(), min(self._places, MOST)
        self._places = 0
        woken = 0
        if places:
            woken = await self._wake_first(places)
            if woken < places:
                more, self._waiting = await self._store.wake(places - woken, now, now)
                woken += more
        if self._looked_at is None or self._clock.monotonic() - self._looked_at >= self._look_s * 0.8:
            self._looked_at = self._clock.monotonic()
            looked_by = now - timedelta(seconds=self._look_s * SPARED)
            more, self._waiting = await self._store.wake(FRONT, now, looked_by)
            if self._waiting:
                others, self._line = await self._store.wake_lines(FRONT, now, looked_by, self._line)
                more += others
            woken += more
        if woken and self.on_woken is not None:
            self.on_woken()

    async def _wake_first(self, places: int) -> int:
        """Of each group that is known, so many of the lines whose turn it is."""
        picks = [
            (group, line, Pick((line[1], line[0], CLASSES.index(line[2])), group[1], count))
            for group, lines in self._groups.items()
            for line, count in self.shares.spread(lines, places).items()
        ]
        if not picks:
            return 0
        woken = await self._store.wake_first([pick for _, _, pick in picks], self._clock.now())
        for (group, line, pick), found in zip(picks, woken, strict=True):
            if found < pick.count:
                self._forget(group, line)
        return sum(woken)

    def _forget(self, group: Group, line: Share) -> None:
        """Nobody more of them waits, or so it seems: who does is seen again with its next look."""
        lines = self._groups.get(group, set())
        lines.discard(line)
        if not lines:
            self._groups.pop(group, None)
