"""What an operator may set."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """`database_url` is a PostgreSQL address, or `memory:` for tests. Times in seconds.

    `tick_s`: how often cooldowns are looked at, 0.5 at most by HLT-1's promise to the dispatcher. `poll_s`: how often a
    watcher looks for what other processes did. `check_s`: how often histories are folded. `keep_outcomes_s`: how long
    an Attempt's outcome is known, so that it counts once; longer than any Attempt lives.
    """

    database_url: str
    tick_s: float = 0.5
    poll_s: float = 0.5
    check_s: float = 60.0
    keep_outcomes_s: float = 7 * 86400.0
    pool_size: int = 4

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Settings":
        """Read POINTSMAN_DATABASE_URL and POINTSMAN_HEALTH_CHECK_S."""
        return Settings(
            database_url=env["POINTSMAN_DATABASE_URL"],
            check_s=float(env.get("POINTSMAN_HEALTH_CHECK_S", "60")),
        )
