"""Time as a port: wall time for records, monotonic time for waiting."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time. `now` may step (it follows the wall); `monotonic` never goes back."""

    def now(self) -> datetime:
        """The wall time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary point, never decreasing."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds of this clock's time; cancellable."""
        ...
