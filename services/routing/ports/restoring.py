"""What is known of the lives of a database. One contract suite proves every implementation."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from services.routing.domain.doubt import Life, Restore


class Restoring(Protocol):
    """The life of this database, and the times that it was put back."""

    async def life(self, database: str, now: datetime) -> Life:
        """As it stands; where there is none yet it begins under that name."""
        ...

    async def beat(self, at_least: int, now: datetime) -> Life:
        """One beat on, above `at_least` too."""
        ...

    async def pulse(self, seen: int | None = None) -> int:
        """How many pulses it has lived (see `domain.silence`), 0 before it begins; with `seen` one more, where it still
        stands there."""
        ...

    async def put_back(self, backup_at: datetime, now: datetime, before: datetime) -> int:
        """Note that the database was put back to that moment, and put every open Task into doubt that came by
        `before`; how many those are. What is queued is due at once, and who has claimed it is fenced: nothing that was
        decided before the word is sent after it. Saying the same backup again changes nothing (0)."""
        ...

    async def restores(self) -> Sequence[Restore]:
        """Every one, oldest first."""
        ...

    async def no_doubt(self, backup_at: datetime | None, now: datetime) -> int:
        """Nothing of that restore, or of any, needs to be looked up any more; how many Tasks were in doubt and have no
        Attempt that waits for an answer."""
        ...


class Mark(Protocol):
    """What is kept beside the database, and is not put back with it."""

    def read(self) -> Life | None:
        """None where there is none, or none that can be read."""
        ...

    def write(self, life: Life) -> None:
        """Keep it, whole or not at all. OSError where it cannot be kept."""
        ...
