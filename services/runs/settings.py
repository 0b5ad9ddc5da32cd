"""What an operator may set."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """`database_url` is a PostgreSQL address, or `memory:` for tests. Intervals in seconds."""

    database_url: str
    submit_interval_s: float = 0.5
    follow_interval_s: float = 0.25
    watch_interval_s: float = 0.5

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Settings":
        """Read POINTSMAN_DATABASE_URL."""
        return Settings(database_url=env["POINTSMAN_DATABASE_URL"])
