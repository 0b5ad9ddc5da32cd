"""The public JSON shapes of restores."""

from datetime import datetime

from msgspec import Struct


class Restore(Struct, frozen=True):
    """One time that the database was put back to a backup."""

    backup_at: datetime | None
    noticed_at: datetime | None
    over_at: datetime | None


class Restores(Struct, frozen=True):
    """Every one that is known, oldest first. `tasks`: how many the word is about."""

    restores: list[Restore]
    tasks: int
