"""A pattern over words, and what it proves."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """A pattern over lower-case text, and the code of our registry that it proves."""

    pattern: re.Pattern[str]
    ours: str


def word(ours: str, *patterns: str) -> Word:
    """One line: any of the patterns proves `ours`."""
    return Word(re.compile("|".join(patterns)), ours)
