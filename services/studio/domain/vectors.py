"""Texts as unit vectors in which texts with the same words, and parts of words, lie near each other.

Every word (an ideograph is one), pair of words and run of three letters adds to a few places of the vector, chosen by
its hash under the name of the model: the same model gives the same vector everywhere, and vectors of two models say
nothing to each other.
Meaning beyond the letters is not seen: a synonym is a stranger.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections import Counter
from functools import lru_cache
from itertools import pairwise

from services.studio.domain.responder import PLAIN_WORDS

PLACES = 12
"""To how many places of the vector one feature adds: several, so that a shortened vector still knows of most."""
FEATURES_KEPT = 16_384
"""Features whose places are remembered, at a kilobyte each at most."""
_NUMBERS = struct.Struct(f">{PLACES}I")
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")


@lru_cache(maxsize=512)
def embedded(text: str, space: str, full: int, dimensions: int) -> tuple[float, ...]:
    """The vector of a text in the space of a model of `full` dimensions, shortened to its first `dimensions`."""
    vector = [0.0] * dimensions
    for feature, weight in features(text).items():
        for place, sign in _places_in(feature, space, full, dimensions):
            vector[place] += sign * weight
    length = math.sqrt(math.fsum(value * value for value in vector))
    if length == 0.0:  # nothing of the text fell into the part that is left
        vector[_places(text, space, full)[0][0] % dimensions] = length = 1.0
    return tuple(value / length for value in vector)


def features(text: str) -> dict[str, float]:
    """What a text is made of, with weights: a word of meaning counts most, and its tenth use little."""
    words = [word.lower() for word in _WORD.findall(text)]
    found: Counter[str] = Counter()
    for word in words:
        found[f"w {word}"] += 1
        marked = f"^{word}$"
        found.update(f"c {marked[at : at + 3]}" for at in range(len(marked) - 2))
    found.update(f"p {one} {other}" for one, other in pairwise(words))
    found.update(f"s {sign}" for sign in text if not sign.isalnum() and not sign.isspace())
    return {feature: _weight(feature) * math.log1p(times) for feature, times in found.items()}


def _weight(feature: str) -> float:
    if feature[0] == "w":
        return 0.15 if feature[2:] in PLAIN_WORDS else 1.0
    return {"c": 0.3, "p": 0.4, "s": 0.1}[feature[0]]


def _places(feature: str, space: str, full: int) -> list[tuple[int, float]]:
    digest = hashlib.blake2b(feature.encode(), digest_size=PLACES * 4, key=space.encode()[:64]).digest()
    return [(number // 2 % full, 1.0 if number % 2 else -1.0) for number in _NUMBERS.unpack(digest)]


@lru_cache(maxsize=FEATURES_KEPT)
def _places_in(feature: str, space: str, full: int, dimensions: int) -> tuple[tuple[int, float], ...]:
    """Those that are left of a shortened vector. Texts share most of their features."""
    return tuple(found for found in _places(feature, space, full) if found[0] < dimensions)
