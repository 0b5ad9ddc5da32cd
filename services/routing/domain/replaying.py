"""A saved round decided again, and the first place at which the two decisions differ (SEL-22).

Laws of this file:
- what is compared are bytes: the decision as it stands in the record against the canonical JSON of the new one;
- a record that cannot be read is told as a difference, never as an exception: an operator asks for every round.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from libs.kernel.canonical import canonical_json
from services.routing.domain.selection import select
from services.routing.domain.selection_record import FORMAT, decision_json, decision_text, recorded_inputs

SHOWN = 400
"""Characters of a differing value that are told."""


@dataclass(frozen=True, slots=True)
class Difference:
    """`pointer` leads into the decision; empty = the whole. The values are JSON texts, empty where there is none."""

    pointer: str
    recorded: str
    replayed: str


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay of one record came to. `digest` is the SHA-256 of the recorded decision's bytes."""

    digest: str
    difference: Difference | None = None

    @property
    def identical(self) -> bool:
        """Byte for byte."""
        return self.difference is None


def replay_record(saved: str) -> Replay:
    """Decide again from the record's inputs alone."""
    try:
        recorded = decision_text(saved)
    except ValueError as error:
        return Replay(sha256(saved.encode()).hexdigest(), Difference("", _shortened(saved), f"no record: {error}"))
    digest = sha256(recorded.encode()).hexdigest()
    form = json.loads(saved).get("format")
    if form != FORMAT:
        return Replay(digest, Difference("", f"format {form}", f"this release reads format {FORMAT}"))
    try:
        replayed = decision_json(select(recorded_inputs(saved)))
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        return Replay(digest, Difference("", "", f"the inputs cannot be decided on: {type(error).__name__}: {error}"))
    return Replay(digest, None if replayed == recorded else first_difference(recorded, replayed))


def first_difference(recorded: str, replayed: str) -> Difference:
    """Where two decisions differ first, names in the order of the record."""
    found = _walk("", json.loads(recorded), json.loads(replayed))
    if found is None:  # equal values, other bytes: the record was not written by us
        return Difference("", _shortened(recorded), _shortened(replayed))
    pointer, one, other = found
    return Difference(pointer, _told(one), _told(other))


_ABSENT = object()


def _walk(pointer: str, one: Any, other: Any) -> tuple[str, Any, Any] | None:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        pairs = [(name, one.get(name, _ABSENT), other.get(name, _ABSENT)) for name in sorted(one.keys() | other.keys())]
    elif isinstance(one, list) and isinstance(other, list):
        longest = max(len(one), len(other))
        pairs = [(str(place), _at(one, place), _at(other, place)) for place in range(longest)]
    else:
        same = type(one) is type(other) and one == other
        return None if same else (pointer, one, other)
    for name, left, right in pairs:
        escaped = name.replace("~", "~0").replace("/", "~1")
        found = _walk(f"{pointer}/{escaped}", left, right)
        if found is not None:
            return found
    return None


def _at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else _ABSENT


def _told(value: Any) -> str:
    return "" if value is _ABSENT else _shortened(canonical_json(value).decode())


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
