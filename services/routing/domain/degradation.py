"""Degradation: the declared transformation of a request into a lesser profile (TIER-3, TIER-5).

Three verbs in this order, on named fields of the input, no scripts:

    drop_inputs: [reference_videos]              the field is left out
    clamp: {duration_s: {max: 10}}               a number is moved into the bounds; of a list the first `max` stay
    set: {resolution: 720p}                      the field gets this value

What is kept keeps its order. The same input and rule give the same result; the given input is never changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.routing.domain.catalog import DegradationRule


@dataclass(frozen=True, slots=True)
class Degraded:
    """The request after the rule. `dropped` names the inputs that were there and are gone."""

    input: Mapping[str, Any]
    dropped: tuple[str, ...]


def degrade(rule: DegradationRule, given: Mapping[str, Any]) -> Degraded:
    """Apply `rule`. A list cut short is named as `reference_images[4:]`: its items from the fifth on are gone."""
    result = dict(given)
    dropped = []
    for name in rule.drop_inputs:
        if result.pop(name, None) not in (None, [], ()):
            dropped.append(name)
    for name, bounds in sorted(rule.clamp.items()):  # no store keeps the order of a mapping: a replay has another
        if name in result:
            result[name], lost = _clamped(name, result[name], bounds)
            dropped.extend(lost)
    result.update(rule.set)
    return Degraded(result, tuple(dropped))


def _clamped(name: str, value: Any, bounds: Mapping[str, Any]) -> tuple[Any, list[str]]:
    low, high = bounds.get("min"), bounds.get("max")
    if isinstance(value, (list, tuple)):
        if high is None or len(value) <= high:
            return value, []
        return list(value[: int(high)]), [f"{name}[{int(high)}:]"]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value, []
    if high is not None and value > high:
        return high, []
    if low is not None and value < low:
        return low, []
    return value, []
