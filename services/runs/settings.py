"""What an operator may set."""

from collections.abc import Mapping
from dataclasses import dataclass

from libs.blobs.opening import blobs_address
from libs.fetching.addresses import allows_private
from libs.host.hints import hints_on
from libs.host.placement import PlacementError
from libs.store.sealing import check_keys

LONGEST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Settings:
    """`database_url` is a PostgreSQL address, or `memory:` for tests. Intervals in seconds.

    `blobs_address` is a directory or an `s3://` address.
    `allow_private_urls`: callbacks may lead anywhere, for development alone.
    `secrets_key` seals secrets at rest; where it is absent a key lies in the data directory.
    `keep_events_days`: so long after a Run's end its events are kept; None = for ever.
    `stuck_after_s`: how long a Run may be silent before it is looked at whether something is due.
    `room_interval_s`: after so long what a budget's level refused is looked at again for room.
    `hints`: whether ticks and streams are woken before their next look (POINTSMAN_HINTS).
    """

    database_url: str
    submit_interval_s: float = 0.5
    follow_interval_s: float = 0.25
    room_interval_s: float = 2.0
    watch_interval_s: float = 0.5
    hints: bool = True
    blobs_address: str = "./.pointsman/blobs"
    callback_interval_s: float = 1.0
    allow_private_urls: bool = False
    data_directory: str = "./.pointsman"
    secrets_key: str = ""
    keep_events_days: float | None = None
    prune_interval_s: float = 3600.0
    stuck_after_s: float = 900.0
    standing_interval_s: float = 60.0
    levels_interval_s: float = 300.0

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Settings":
        """Read POINTSMAN_DATABASE_URL, POINTSMAN_HINTS, POINTSMAN_BLOBS (default: `blobs` under POINTSMAN_DATA),
        POINTSMAN_ALLOW_PRIVATE_URLS, POINTSMAN_KEEP_EVENTS_DAYS and POINTSMAN_SECRETS_KEY. PlacementError for a key
        or a number of days that is none."""
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
            keep_events_days=_days(env.get("POINTSMAN_KEEP_EVENTS_DAYS", "").strip()),
        )


def _days(text: str) -> float | None:
    if not text:
        return None
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not 0 < days < LONGEST_DAYS:  # NaN is not
        said = f"POINTSMAN_KEEP_EVENTS_DAYS is {text!r}; give a number of days above 0, or leave it out to keep all"
        raise PlacementError(said)
    return days
