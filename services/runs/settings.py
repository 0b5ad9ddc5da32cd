"""What an operator may set."""

from collections.abc import Mapping
from dataclasses import dataclass

from libs.blobs.opening import blobs_address
from libs.fetching.addresses import allows_private
from libs.host.hints import hints_on
from libs.host.placement import PlacementError
from libs.store.sealing import check_keys


@dataclass(frozen=True, slots=True)
class Settings:
    """`database_url` is a PostgreSQL address, or `memory:` for tests. Intervals in seconds.

    `blobs_address` is a directory or an `s3://` address.
    `allow_private_urls`: callbacks may lead anywhere, for development alone.
    `secrets_key` seals secrets at rest; where it is absent a key lies in the data directory.
    `hints`: whether ticks and streams are woken before their next look (POINTSMAN_HINTS).
    """

    database_url: str
    submit_interval_s: float = 0.5
    follow_interval_s: float = 0.25
    watch_interval_s: float = 0.5
    hints: bool = True
    blobs_address: str = "./.pointsman/blobs"
    callback_interval_s: float = 1.0
    allow_private_urls: bool = False
    data_directory: str = "./.pointsman"
    secrets_key: str = ""

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Settings":
        """Read POINTSMAN_DATABASE_URL, POINTSMAN_HINTS, POINTSMAN_BLOBS (default: `blobs` under POINTSMAN_DATA),
        POINTSMAN_ALLOW_PRIVATE_URLS and POINTSMAN_SECRETS_KEY. PlacementError for a key that is none."""
        keys = env.get("POINTSMAN_SECRETS_KEY", "").strip()
        try:
            check_keys(keys)
        except ValueError as error:
            raise PlacementError(str(error)) from None
        return Settings(
            database_url=env["POINTSMAN_DATABASE_URL"],
            hints=hints_on(env),
            blobs_address=blobs_address(env),
            allow_private_urls=allows_private(env),
            data_directory=env.get("POINTSMAN_DATA") or "./.pointsman",
            secrets_key=keys,
        )
