"""What an operator may set."""

from collections.abc import Mapping
from dataclasses import dataclass

TTL_MAX_S = 120.0


@dataclass(frozen=True, slots=True)
class Settings:
    """`database_url` is a PostgreSQL address, or `memory:` for tests. Times in seconds.

    `sweep_s`: how often lapsed leases are marked as ended. `poll_s`: how often a watcher looks for what other
    processes freed. `redis_url` names a Valkey or Redis server for leases and windows, empty = all in the database
    (docs/guides/capacity.md: what is durable where); `redis_timeout_s` bounds its answers. `ttl_max_s`: the longest
    time to live of a lease there, and so how long that server only renews after it lost its memory.
    """

    database_url: str
    redis_url: str = ""
    redis_timeout_s: float = 2.0
    ttl_max_s: float = TTL_MAX_S
    sweep_s: float = 0.5
    poll_s: float = 0.5
    pool_size: int = 4

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Settings":
        """Read POINTSMAN_DATABASE_URL, POINTSMAN_REDIS_URL and POINTSMAN_CAPACITY_TTL_MAX_S."""
        return Settings(
            database_url=env["POINTSMAN_DATABASE_URL"],
            redis_url=env.get("POINTSMAN_REDIS_URL", ""),
            ttl_max_s=float(env.get("POINTSMAN_CAPACITY_TTL_MAX_S", TTL_MAX_S)),
        )
