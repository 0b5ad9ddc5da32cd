"""The time that all processes of an installation go by: the database's, told now and then, and never going back.

Machines differ, and their clocks are stepped: one that is an hour ahead would take over what others have in hand and
end what has just begun; one that is put back would leave everything for an hour. So:

- what a process believes goes on by its monotonic clock, whatever becomes of the wall of its machine;
- the database tells the time, and remembers what it told: where its own clock went back it goes on from there, at half
  the pace until that clock has caught up. A step forward is time that has passed: nobody can know better;
- in a process time never goes back either: who is ahead of what he is told goes on at half the pace.

Times that are for others, outside, are those of the machine's wall: see `World.outside`.
"""

import logging
from datetime import datetime, timedelta
from pathlib import Path

from libs.kernel.clock import Clock
from libs.store.database import Database
from libs.store.engine import Bounds
from libs.store.migrations import migrate

SCHEMA = "host"
VERSIONS = Path(__file__).parent / "migrations" / "versions"
LOOK_S = 5.0
LONGEST_ANSWER_S = 1.0
"""An answer that took longer tells too little about when it was given."""
WORTH_A_WORD_S = 1.0
TELL = "SELECT tell_time()"

log = logging.getLogger(__name__)


class CommonClock:
    """kernel.Clock: goes on by the monotonic clock of the machine, from what it was told last."""

    def __init__(self, machine: Clock) -> None:
        """Until it is told anything it begins at the wall of the machine."""
        self._machine = machine
        self._told, self._told_at = machine.now(), machine.monotonic()
        self._ahead_s = 0.0
        self.is_new = True
        """Nothing was told yet."""

    def now(self) -> datetime:
        """The common time, aware, in UTC. Never decreasing."""
        passed_s = self._machine.monotonic() - self._told_at
        if self._ahead_s:
            passed_s -= min(self._ahead_s, passed_s / 2)
        return self._told + timedelta(seconds=passed_s)

    def monotonic(self) -> float:
        """The machine's."""
        return self._machine.monotonic()

    async def sleep(self, seconds: float) -> None:
        """As the machine."""
        await self._machine.sleep(seconds)

    def hear(self, time: datetime, asked_at: float, heard_at: float) -> None:
        """It was that time at some moment between those of the monotonic clock."""
        told = time + timedelta(seconds=(heard_at - asked_at) / 2 + self._machine.monotonic() - heard_at)
        believed, self._told_at = self.now(), self._machine.monotonic()
        later_s = (told - believed).total_seconds()
        if max(later_s, -later_s - self._ahead_s) >= WORTH_A_WORD_S:  # while the database catches up it was said once
            log.warning("the common time is %+.1f s from what this process believed", later_s)
        self._told, self._ahead_s = max(told, believed), max(-later_s, 0.0)
        if self.is_new:  # nothing was done yet by the wall of the machine
            self._told, self._ahead_s, self.is_new = told, 0.0, False


class CommonTime:
    """Asks the database for the time, on behalf of one process."""

    def __init__(self, url: str, machine: Clock) -> None:
        """`url` is the address of PostgreSQL."""
        self.clock = CommonClock(machine)
        self._machine = machine
        self._url = url
        self._database = Database(url, schema=SCHEMA, bounds=Bounds(pool_size=1, max_overflow=0))
        self._lane = self._database.lane()

    async def begin(self) -> None:
        """Return when the time is known. Fault governance_backend_down if the database is away."""
        await migrate(self._url, schema=SCHEMA, versions=VERSIONS)
        await self.look()

    async def look(self) -> None:
        """Ask once. An answer that was long on its way is not believed, but for the first."""
        asked_at = self._machine.monotonic()
        ((told,),) = await self._lane.fetch(TELL)
        heard_at = self._machine.monotonic()
        if heard_at - asked_at <= LONGEST_ANSWER_S or self.clock.is_new:
            self.clock.hear(told, asked_at, heard_at)

    async def close(self) -> None:
        """Close the connection."""
        await self._database.close()
