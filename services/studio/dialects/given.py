"""What a request gave, field by field, for the dialects whose inputs are plain objects. Each raises Refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.studio.domain.accounts import Model
from services.studio.domain.prices import RATIOS
from services.studio.domain.refusals import Reason, Refusal


def text(given: Mapping[str, Any], name: str) -> str:
    """A text, "" where it is absent."""
    value = given.get(name) or ""
    if not isinstance(value, str):
        raise Refusal(Reason.PARAMETER_INVALID, "Input should be a valid string", name)
    return value


def words(given: Mapping[str, Any], *instead: Any) -> str:
    """The prompt, which may be missing where there is something `instead`."""
    prompt = text(given, "prompt")
    if not prompt and not any(instead):
        raise Refusal(Reason.PARAMETER_MISSING, "Field required", "prompt")
    return prompt


def urls(given: Mapping[str, Any], name: str, most: int) -> tuple[str, ...]:
    """A list of at most so many addresses."""
    values = given.get(name) or []
    if not isinstance(values, list) or len(values) > most or not all(isinstance(url, str) and url for url in values):
        raise Refusal(Reason.PARAMETER_INVALID, f"List should have at most {most} items", name)
    return tuple(values)


def whole(given: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    """A whole number within bounds."""
    value = given.get(name)
    value = default if value is None else value
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Refusal(Reason.PARAMETER_INVALID, f"Input should be a whole number from {least} to {most}", name)
    return value


def seed(given: Mapping[str, Any]) -> int:
    """The seed, -1 for any."""
    return whole(given, "seed", -1, -1, 2**32 - 1)


def seconds(given: Mapping[str, Any], model: Model) -> int:
    """The length of a clip."""
    return whole(given, "duration", 5, model.duration_min_s, model.duration_max_s)


def one_of(given: Mapping[str, Any], name: str, default: str, known: Sequence[str]) -> str:
    """A word out of a few."""
    value = text(given, name) or default
    if value not in known:
        raise Refusal(Reason.PARAMETER_INVALID, f"Input should be one of {', '.join(known)}", name)
    return value


def ratio(given: Mapping[str, Any], name: str, frame: str) -> str:
    """The ratio of a clip: that of its first frame where there is one and none is asked for."""
    return one_of(given, name, "adaptive" if frame else "16:9", (*RATIOS, "adaptive"))
