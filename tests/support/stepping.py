"""A process of the product whose wall clock a test may step, as an operator or a time daemon steps a machine's.

    CLOCK_STEP=FILE python -m tests.support.stepping CONTEXT…

FILE holds the seconds by which it is off; no file is none. The monotonic clock goes on, as it does on a machine.
"""

import logging
import os
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from libs.host import process
from libs.host.world import RisingUlids, real_world
from libs.kernel.clock import Clock
from libs.kernel.world import World
from services.__main__ import BUILDERS

LOOKS_EVERY_S = 0.05
VARIABLE = "CLOCK_STEP"

log = logging.getLogger(__name__)


@dataclass
class SteppedClock:
    """kernel.Clock, off by what the file says; it is read a few times a second."""

    real: Clock
    file: Path
    off: timedelta = timedelta(0)
    looked_at: float = float("-inf")

    def now(self) -> datetime:
        """The wall time that this machine believes in."""
        if self.monotonic() - self.looked_at >= LOOKS_EVERY_S:
            self.looked_at = self.monotonic()
            off = timedelta(seconds=float(self.file.read_text() if self.file.exists() else 0))
            if off != self.off:
                log.info("the clock steps by %g s", (off - self.off).total_seconds())
            self.off = off
        return self.real.now() + self.off

    def monotonic(self) -> float:
        """As it is."""
        return self.real.monotonic()

    async def sleep(self, seconds: float) -> None:
        """As long as it is."""
        await self.real.sleep(seconds)


def stepped_world() -> World:
    """The machine's, with that clock; its ids go by it too."""
    real = real_world()
    clock = SteppedClock(real.clock, Path(os.environ[VARIABLE]))
    return replace(real, clock=clock, ids=RisingUlids(lambda: int(clock.now().timestamp() * 1000)))


async def step_database(connection: Any, time: str) -> None:
    """The clock of the database's machine shows that expression of SQL from now on."""
    made = "CREATE OR REPLACE FUNCTION host.server_time() RETURNS timestamptz LANGUAGE sql VOLATILE"
    await connection.execute(f"{made} AS $$ SELECT {time} $$")


if __name__ == "__main__":
    process.main(BUILDERS, world=stepped_world())
