"""Sizes of pictures as users write them."""

import re

_PIXELS = re.compile(r"(\d{2,5})[x*](\d{2,5})")


def pixels_of(size: str) -> tuple[int, int] | None:
    """Width and height of "1024x1024" or "1024*1024"; None for any other word ("2K", "square_hd", "")."""
    match = _PIXELS.fullmatch(size.strip().lower())
    return None if match is None else (int(match.group(1)), int(match.group(2)))
