"""Virtual accounts: what a provider's customer account is, in the eyes of that provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

DIALECTS = ("ark", "dashscope", "fal", "kling", "local-ocr", "minimax", "openai", "replicate")
PLAIN = ("ark", "openai")
"""The dialects of the un-prefixed paths. Those of the others would be OpenAI's too, or anybody's."""
MOTIFS = ("curtains", "pines", "clouds", "petals", "sparks", "waves", "floes", "gusts", "mists", "stars", "reeds")
KINDS = ("video", "image", "speech", "chat", "embedding", "ocr")
DRAWN = ("video", "image")
"""The kinds whose work has a look."""
UNITS = ("second", "image", "request", "million_tokens", "thousand_characters", "page")


@dataclass(frozen=True, slots=True)
class Price:
    """What one model of one account costs.

    `rate` is in `currency` per `unit`; `rates` overrides it by output resolution ("720p"), image size, or, for tokens,
    by "input" and "output".
    `minimum` is the least that one accepted job costs.
    """

    currency: str
    unit: str
    rate: Decimal
    rates: Mapping[str, Decimal] = field(default_factory=dict)
    minimum: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Model:
    """One model that an account may call, with the limits at which the provider refuses.

    `concurrency` bounds the queued and running jobs of this model in its account; 0 leaves that to the account.
    Counts of references are the most that one request may carry; 0 means the model cannot take that material at all.
    `context_tokens` bounds the prompt with its answer, and one text to embed; `dimensions` is the full length of a
    vector; `features` are those of a chat model: "tools", "json_schema", "reasoning"; `max_bytes` bounds a picture
    that is to be read. A model that takes `clips` joins them to a film and draws nothing; a film lasts `film_max_s` at
    most, with as many `narrations`, and with `subtitles` where it has them.
    """

    id: str
    kind: str
    price: Price
    concurrency: int = 0
    reference_images: int = 0
    reference_videos: int = 0
    reference_audios: int = 0
    last_frame: bool = True
    duration_min_s: int = 4
    duration_max_s: int = 15
    resolutions: tuple[str, ...] = ("480p", "720p", "1080p")
    sizes: tuple[str, ...] = ()
    n_max: int = 4
    max_characters: int = 4096
    context_tokens: int = 8192
    max_output_tokens: int = 4096
    dimensions: int = 1536
    max_batch: int = 2048
    features: tuple[str, ...] = ()
    max_bytes: int = 10_000_000
    clips: int = 0
    narrations: int = 0
    subtitles: bool = False
    film_max_s: int = 600

    @property
    def draws(self) -> bool:
        """Whether its work has a look of its own."""
        return self.kind in DRAWN and not self.clips


@dataclass(frozen=True, slots=True)
class Style:
    """How the work of an account looks: three colours from dark to light (hex), and what is drawn in its pictures."""

    palette: tuple[str, str, str]
    motif: str


@dataclass(frozen=True, slots=True)
class Account:
    """One virtual account.

    `queue_s` and `render_s` are the seconds a job spends queued and running at `speed` 1; the real rendering happens
    inside that time. `running` bounds the jobs that run at once, the rest waits queued; `concurrency` bounds both
    together and is where the account answers 429. Chat speaks its first token after `first_token_s` and then
    `tokens_per_s` (0: as fast as it can), both at `speed` 1 as well. `real_person` is "allowed" or "refused".
    `honours_keys` says that an `Idempotency-Key` makes requests one.
    """

    id: str
    dialect: str
    key: str
    models: Mapping[str, Model]
    style: Style = Style(("#222222", "#888888", "#eeeeee"), "clouds")
    revoked: bool = False
    concurrency: int = 10
    running: int = 10
    queue_s: float = 0.3
    render_s: float = 2.0
    speed: float = 1.0
    first_token_s: float = 0.0
    tokens_per_s: float = 0.0
    real_person: str = "refused"
    charges_on_failure: bool = False
    honours_keys: bool = False
