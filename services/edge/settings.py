"""What an operator may set."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from libs.fetching.addresses import allows_private
from libs.host.placement import PlacementError
from libs.materials.links import Links, links_of
from services.edge.domain.open_limits import BODY_MIB, MIB, VARIABLES, Hold, OpenLimits

LARGEST_BODY_BYTES = 64 * MIB
MOST_OPEN = 1_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """`database_url` is a PostgreSQL address, or `memory:` for tests. Times in seconds, sizes in bytes.

    `blobs` is a directory or an `s3://` address. `admin_key` empty means: the one in `data_directory`/admin.key, made
    if it is missing. Port 0 takes a free port. `key_cache_s` + `stream_check_s` bound how long a revoked key lives on;
    their sum stays below 5 s (AUTH-1). `patience_s`: how long a client may be silent within a request, and take for
    its head. `key_turn_s`: how long a request waits for another with its idempotency key; `key_look_s`: how long a Run
    is looked for that may still come of a key. `links`: what opens a material to a provider without a key; None =
    nothing does. `open_limits`: what each tenant may hold open at this process.
    """

    database_url: str
    blobs: str
    data_directory: str = "./.pointsman"
    http_host: str = "127.0.0.1"
    http_port: int = 8080
    admin_key: str = ""
    allow_private_urls: bool = False
    body_limit_bytes: int = LARGEST_BODY_BYTES
    upload_limit_bytes: int = 1024 * MIB
    heartbeat_s: float = 15.0
    key_cache_s: float = 2.0
    stream_check_s: float = 2.5
    drain_s: float = 10.0
    patience_s: float = 30.0
    key_turn_s: float = 5.0
    key_look_s: float = 2.0
    links: Links | None = None
    open_limits: OpenLimits = field(default_factory=OpenLimits)

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Settings":
        """Read POINTSMAN_DATABASE_URL, _BLOBS, _DATA, _HTTP, _ADMIN_KEY, _ALLOW_PRIVATE_URLS, _PUBLIC_URL with
        _LINK_KEY, and _TENANT_STREAMS, _JOINS, _CALLS, _BODIES and _BODY_MIB. PlacementError for one of the last five
        that is no limit."""
        host, port = parse_address(env.get("POINTSMAN_HTTP", "").strip() or "127.0.0.1:8080")
        data = env.get("POINTSMAN_DATA", "").strip() or "./.pointsman"
        return Settings(
            database_url=env["POINTSMAN_DATABASE_URL"],
            blobs=env.get("POINTSMAN_BLOBS", "").strip() or f"{data}/blobs",
            data_directory=data,
            http_host=host,
            http_port=port,
            admin_key=env.get("POINTSMAN_ADMIN_KEY", "").strip(),
            allow_private_urls=allows_private(env),
            links=links_of(env),
            open_limits=limits_of(env),
        )


def limits_of(env: Mapping[str, str]) -> OpenLimits:
    """What each tenant may hold open. PlacementError for what is no whole number, or leaves no room for one body."""
    usual = OpenLimits()
    body_mib = _whole(env, BODY_MIB, usual.body_bytes // MIB)
    least = LARGEST_BODY_BYTES // MIB
    if 0 < body_mib < least:
        told = f"{BODY_MIB} is {body_mib}, and one body may have {least} MiB; give at least that, or 0 for no limit"
        raise PlacementError(told)
    return OpenLimits(
        _whole(env, VARIABLES[Hold.STREAM], usual.streams),
        _whole(env, VARIABLES[Hold.JOIN], usual.joins),
        _whole(env, VARIABLES[Hold.CALL], usual.calls),
        _whole(env, VARIABLES[Hold.BODY], usual.bodies),
        body_mib * MIB,
    )


def _whole(env: Mapping[str, str], name: str, usual: int) -> int:
    text = env.get(name, "").strip()
    if not text:
        return usual
    if not (text.isascii() and text.isdecimal() and len(text) < 9 and int(text) <= MOST_OPEN):
        raise PlacementError(f"{name} is {text[:40]!r}; give a whole number up to {MOST_OPEN}, or 0 for no limit")
    return int(text)


def parse_address(text: str) -> tuple[str, int]:
    """`HOST:PORT`, with an IPv6 host in brackets. ValueError names what is wrong with it."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535 or (":" in host and not host.startswith("[")):
        raise ValueError(f"POINTSMAN_HTTP: {text!r} is no address; say HOST:PORT, for example 127.0.0.1:8080")
    return host.strip("[]"), int(port)
