"""What a job costs at an account, and the nominal sizes that providers count in."""

from __future__ import annotations

from decimal import Decimal

from services.studio.domain.accounts import Price
from services.studio.domain.jobs import ImageJob, SpeechJob, VideoJob

NOMINAL_FPS = 24

# Output pixels by resolution and ratio, as the provider's price page gives them.
FRAMES: dict[str, dict[str, tuple[int, int]]] = {
    "480p": {
        "16:9": (864, 496),
        "9:16": (496, 864),
        "4:3": (752, 560),
        "3:4": (560, 752),
        "1:1": (640, 640),
        "21:9": (992, 432),
    },
    "720p": {
        "16:9": (1280, 720),
        "9:16": (720, 1280),
        "4:3": (1112, 834),
        "3:4": (834, 1112),
        "1:1": (960, 960),
        "21:9": (1470, 630),
    },
    "1024p": {"16:9": (1792, 1024), "9:16": (1024, 1792)},
    "1080p": {
        "16:9": (1920, 1080),
        "9:16": (1080, 1920),
        "4:3": (1664, 1248),
        "3:4": (1248, 1664),
        "1:1": (1440, 1440),
        "21:9": (2206, 946),
    },
}
RATIOS = tuple(FRAMES["720p"])


def video_tokens(job: VideoJob) -> int:
    """Completion tokens of a clip: width x height x frames per second x seconds / 1024, at nominal size; none of a
    film, for which no model worked."""
    if job.film is not None:
        return 0
    width, height = FRAMES[job.resolution][job.ratio]
    return width * height * NOMINAL_FPS * job.duration_s // 1024


def video_charge(price: Price, job: VideoJob) -> Decimal:
    """Amount for one clip or film in the price's currency."""
    seconds = Decimal(job.duration_s) if job.film is None else Decimal(str(job.film.duration_s))
    return _charge(price, job.resolution, seconds=seconds, tokens=video_tokens(job), requests=1)


def image_charge(price: Price, job: ImageJob, images: int) -> Decimal:
    """Amount for `images` pictures that were really made."""
    return _charge(price, f"{job.width}x{job.height}", images=images, requests=1) if images else Decimal(0)


def speech_charge(price: Price, job: SpeechJob) -> Decimal:
    """Amount for one spoken text."""
    return _charge(price, "", characters=len(job.text), requests=1)


def token_charge(price: Price, input_tokens: int, output_tokens: int = 0) -> Decimal:
    """Amount for the tokens read and written; each may have its own rate. A flat price knows requests alone."""
    if price.unit != "million_tokens":
        return _charge(price, "", requests=1)
    parts = (("input", input_tokens), ("output", output_tokens))
    return max(sum((_of_tokens(price, name, tokens) for name, tokens in parts), Decimal(0)), price.minimum)


def page_charge(price: Price, pages: int) -> Decimal:
    """Amount for the pages that were read."""
    return _charge(price, "", pages=pages, requests=1)


def _of_tokens(price: Price, variant: str, tokens: int) -> Decimal:
    return price.rates.get(variant, price.rate) * tokens / 1_000_000


def _charge(price: Price, variant: str, **amounts: int | Decimal) -> Decimal:
    rate = price.rates.get(variant, price.rate)
    quantity = {
        "second": Decimal(amounts.get("seconds", 0)),
        "image": Decimal(amounts.get("images", 0)),
        "request": Decimal(amounts.get("requests", 0)),
        "million_tokens": Decimal(amounts.get("tokens", 0)) / 1_000_000,
        "thousand_characters": Decimal(amounts.get("characters", 0)) / 1000,
        "page": Decimal(amounts.get("pages", 0)),
    }[price.unit]
    return max(rate * quantity, price.minimum)
