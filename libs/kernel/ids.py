"""Ids as a port."""

from typing import Protocol


class Ids(Protocol):
    """A source of unique ids that sort by the time of their making."""

    def ulid(self) -> str:
        """A new ULID: 26 characters of Crockford base 32, rising within one process."""
        ...
