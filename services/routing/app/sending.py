"""Submissions under way in this process. They wait for providers, so they take none of the places where Tasks are
decided; and of one Channel there are only so many at once, so that one that hangs is not in the way of the others."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Sending:
    """Counts by Channel. The bound is looked at before a slot is taken: Tasks decided in one turn may go beyond it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._by_channel: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Over all Channels."""
        return self._by_channel.total()

    def under_way(self, channel_id: str) -> int:
        """Of one Channel."""
        return self._by_channel[channel_id]

    @contextmanager
    def to(self, channel_id: str) -> Iterator[None]:
        """One submission, for the time of the block."""
        self._by_channel[channel_id] += 1
        try:
            yield
        finally:
            self._by_channel[channel_id] -= 1
            if not self._by_channel[channel_id]:
                del self._by_channel[channel_id]
