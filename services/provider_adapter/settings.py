"""What an operator may set."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from libs.blobs.opening import blobs_address
from libs.fetching.addresses import allows_private
from libs.materials.links import Links, links_of
from services.provider_adapter.domain.job import Timeouts

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """`blobs_address` is a directory or an `s3://` address. Times in seconds, sizes in bytes.

    `timeouts` serve where a channel names none. `margin_s` is kept back of a caller's deadline, so that the outcome of
    a submission is still told. `answer_bytes` bounds an answer (pictures travel in it), `media_bytes` one result,
    `material_bytes` one input that is sent along. `media_s` bounds one fetch of a result, `media_tries` how often it is
    tried. A submission is called not accepted when the records have lacked it `settle_s` after the last moment at which
    it can have arrived; `reconcile_pages` bounds how far they are read. `environment` is where `env:NAME` is looked
    up, at every call; it holds secrets and is in no text form. `allow_private_urls` is for development alone; `links`
    are how providers read materials from our edge.
    """

    blobs_address: str
    timeouts: Timeouts = field(default_factory=Timeouts)
    margin_s: float = 0.5
    answer_bytes: int = 128 * MIB
    media_bytes: int = 1024 * MIB
    material_bytes: int = 45 * MIB
    media_s: float = 120.0
    media_tries: int = 3
    media_backoff_s: float = 0.25
    settle_s: float = 10.0
    reconcile_pages: int = 10
    allow_private_urls: bool = False
    links: Links | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Settings":
        """Read POINTSMAN_BLOBS (default: `blobs` under POINTSMAN_DATA), _RECONCILE_SETTLE_S, _ALLOW_PRIVATE_URLS, and
        _PUBLIC_URL with _LINK_KEY."""
        return Settings(
            blobs_address=blobs_address(env),
            environment=env,
            allow_private_urls=allows_private(env),
            links=links_of(env),
            settle_s=float(env.get("POINTSMAN_RECONCILE_SETTLE_S", "10")),
        )
