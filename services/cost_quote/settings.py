"""What an operator may set."""

from collections.abc import Mapping
from dataclasses import dataclass

CHECK_S = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """`database_url` is a PostgreSQL address, or `memory:` for tests. Times in seconds.

    `check_s`: how often the ledger is held against the entries and Holds that came since.
    """

    database_url: str
    check_s: float = CHECK_S

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Settings":
        """Read POINTSMAN_DATABASE_URL and POINTSMAN_LEDGER_CHECK_S."""
        return Settings(
            database_url=env["POINTSMAN_DATABASE_URL"],
            check_s=float(env.get("POINTSMAN_LEDGER_CHECK_S", CHECK_S)),
        )
