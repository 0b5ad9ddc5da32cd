"""What an operator may set."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """`database_url` is a PostgreSQL address, or `memory:` for tests. Times in seconds.

    `sweep_s`: how often lapsed leases are marked as ended. `poll_s`: how often a watcher looks for what other
    processes freed.
    """

    database_url: str
    sweep_s: float = 0.5
    poll_s: float = 0.5
    pool_size: int = 4

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Settings":
        """Read POINTSMAN_DATABASE_URL."""
        return Settings(database_url=env["POINTSMAN_DATABASE_URL"])
