"""What has a health: Channels and Supplies."""

from enum import StrEnum

from msgspec import Struct


class Kind(StrEnum):
    """The sort of a subject."""

    CHANNEL = "channel"
    SUPPLY = "supply"


class Subject(Struct, frozen=True, order=True):
    """One Channel ("ark-main") or Supply ("ark-main/seedance").

    The order of subjects is the order in which their rows are locked: Channels before Supplies, then by id.
    """

    kind: Kind
    id: str

    @staticmethod
    def channel(channel_id: str) -> "Subject":
        """The Channel of that id."""
        return Subject(Kind.CHANNEL, channel_id)

    @staticmethod
    def supply(supply_id: str) -> "Subject":
        """The Supply of that id."""
        return Subject(Kind.SUPPLY, supply_id)

    def __str__(self) -> str:
        return f"{self.kind.value} '{self.id}'"
