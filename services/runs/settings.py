"""What an operator may set."""

from collections.abc import Mapping
from dataclasses import dataclass

from libs.blobs.opening import blobs_address
from libs.host.hints import hints_on


@dataclass(frozen=True, slots=True)
class Settings:
    """`database_url` is a PostgreSQL address, or `memory:` for tests. Intervals in seconds.

    `blobs_address` is a directory or an `s3://` address.
    `hints`: whether ticks and streams are woken before their next look (POINTSMAN_HINTS).
    """

    database_url: str
    submit_interval_s: float = 0.5
    follow_interval_s: float = 0.25
    watch_interval_s: float = 0.5
    hints: bool = True
    blobs_address: str = "./.pointsman/blobs"

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Settings":
        """Read POINTSMAN_DATABASE_URL, POINTSMAN_HINTS and POINTSMAN_BLOBS (default: `blobs` under POINTSMAN_DATA)."""
        return Settings(
            database_url=env["POINTSMAN_DATABASE_URL"], hints=hints_on(env), blobs_address=blobs_address(env)
        )
