"""Pages of a list, read in one way by all contexts: how many rows, and a token that is a number."""

from libs.faults.fault import Fault

DEFAULT_PAGE = 100
LARGEST_PAGE = 1000


def page_size(asked: int, default: int = DEFAULT_PAGE) -> int:
    """Rows, 1 to 1000: `default` where nothing was said (0), 1000 for more. Fault validation_failed below 0 (AIP-158).

    A negative size would otherwise be a LIMIT that PostgreSQL refuses, or cut rows off the end.
    """
    if asked < 0:
        raise Fault.invalid(("/page_size", f"must be from 1 to {LARGEST_PAGE}"))
    return min(asked or default, LARGEST_PAGE)


def number_in(page_token: str) -> int:
    """The number that is our token, 0 for none. Fault validation_failed for a text that no page ended with."""
    if not page_token:
        return 0
    if not (page_token.isascii() and page_token.isdecimal() and len(page_token) < 19):
        raise Fault.invalid(("/page_token", "is not one that this service gave; begin without it"))
    return int(page_token)
