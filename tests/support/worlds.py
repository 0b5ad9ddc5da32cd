"""A world that a test steers: time stands until it is moved, ids count up, chance repeats."""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from libs.kernel.world import World

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@dataclass(slots=True)
class SteeredClock:
    """Implements `Clock`: `advance` moves it; sleepers wake when their time has come."""

    moment: datetime = START
    off_s: float = 0.0
    """By how much its wall has been stepped."""
    _sleepers: list[tuple[datetime, asyncio.Event]] = field(default_factory=list)

    def now(self) -> datetime:
        """The moment it stands at, by its wall."""
        return self.moment + timedelta(seconds=self.off_s)

    def monotonic(self) -> float:
        """Seconds since the start."""
        return (self.moment - START).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """Until `advance` has passed that time."""
        woken = asyncio.Event()
        self._sleepers.append((self.moment + timedelta(seconds=seconds), woken))
        await woken.wait()

    def advance(self, seconds: float) -> datetime:
        """Move on, and wake who is due."""
        self.moment += timedelta(seconds=seconds)
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self.moment]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper not in due]
        for _, woken in due:
            woken.set()
        return self.moment


@dataclass(slots=True)
class CountedIds:
    """Implements `Ids`: 26 characters, rising."""

    count: int = 0

    def ulid(self) -> str:
        """The next id."""
        self.count += 1
        return f"{self.count:026d}"


def steered_world(seed: int = 0) -> tuple[World, SteeredClock]:
    """A world and its clock."""
    clock = SteeredClock()
    return World(clock, CountedIds(), random.Random(seed)), clock
