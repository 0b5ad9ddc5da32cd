"""Tokens, as the studio counts and streams them: short pieces of text that join to exactly what they came from.

A token is up to six letters or digits of a word with the blank before them, one sign or ideograph, or a run of blanks.
"""

from __future__ import annotations

import re

_PIECE = re.compile(r"[ \n]?[A-Za-z0-9_]{1,6}|[ \n]?[^\sA-Za-z0-9_]|\s+")


def pieces(text: str) -> tuple[str, ...]:
    """The tokens of a text; joined they are the text."""
    return tuple(_PIECE.findall(text))


def count(text: str) -> int:
    """How many tokens a text has."""
    return sum(1 for _ in _PIECE.finditer(text))
