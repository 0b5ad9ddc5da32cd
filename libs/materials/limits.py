"""How much of a material is accepted, by family (AUTH-4). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Measures:
    """What a material is: its type, bytes, pixels a side (0 for sound) and seconds (0 for a picture)."""

    media_type: str
    bytes: int
    width: int = 0
    height: int = 0
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What is accepted of one family; 0 = no limit."""

    types: tuple[str, ...]
    bytes: int
    pixels: int = 0
    duration_s: float = 0.0


# As wide as the widest provider takes; what a model or supply takes of that is its own capability to say.
ACCEPTED: Mapping[str, Limits] = MappingProxyType(
    {
        "image": Limits(
            ("image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp", "image/tiff"),
            bytes=30 * MIB,
            pixels=64_000_000,
        ),
        "video": Limits(
            ("video/mp4", "video/quicktime", "video/webm"), bytes=200 * MIB, pixels=4096 * 4096, duration_s=600.0
        ),
        "audio": Limits(
            ("audio/mpeg", "audio/wav", "audio/mp4", "audio/aac", "audio/ogg", "audio/flac", "video/mp4", "video/webm"),
            bytes=50 * MIB,
            duration_s=1800.0,
        ),
    }
)


def type_reason(media_type: str, family: str, limits: Limits) -> str | None:
    """Why the type is not accepted, or None. `media_type` "" = the bytes are nothing that we know."""
    if media_type in limits.types:
        return None
    known = ", ".join(name.partition("/")[2] for name in limits.types if name.startswith(family))
    return f"is {media_type or 'of no known type'}, not {_article(family)} {family} ({known})"


def measure_reason(seen: Measures, limits: Limits) -> str | None:
    """Why a material of that size is not accepted, or None."""
    if seen.bytes > limits.bytes:
        return f"has {seen.bytes} bytes; {limits.bytes} are accepted"
    if limits.pixels and seen.width * seen.height > limits.pixels:
        return f"has {seen.width}x{seen.height} pixels; {limits.pixels} in all are accepted"
    if limits.duration_s and seen.duration_s > limits.duration_s:
        return f"lasts {seen.duration_s:.1f} s; {limits.duration_s:g} s are accepted"
    return None


def _article(family: str) -> str:
    return "a" if family == "video" else "an"
