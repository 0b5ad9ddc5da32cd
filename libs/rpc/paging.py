"""Pages of a list, read in one way by all contexts: how many rows and bytes, and tokens that are numbers or ids."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from libs.faults.fault import Fault

DEFAULT_PAGE = 100
LARGEST_PAGE = 1000
ID_LENGTH = 26
LARGEST_PAGE_BYTES = 3 * 1024 * 1024
"""Of the messages of a page together, unless one alone has more: a client of gRPC takes 4 MiB where nobody has told it
otherwise."""
FIRST_LOOK = 10
"""Rows that are read before their size is known."""


class Message(Protocol):
    """A row of a page, as it is answered."""

    def ByteSize(self) -> int:
        """Bytes on the wire."""
        ...


M = TypeVar("M", bound=Message)
Look = Callable[[str, int], Awaitable[tuple[Sequence[M], str]]]
"""(token, most rows) -> (the rows behind that token, the token of what follows them or "")."""


def page_size(asked: int, default: int = DEFAULT_PAGE) -> int:
    """Rows, 1 to 1000: `default` where nothing was said (0), 1000 for more. Fault validation_failed below 0 (AIP-158).

    A negative size would otherwise be a LIMIT that PostgreSQL refuses, or cut rows off the end.
    """
    if asked < 0:
        raise Fault.invalid(("/page_size", f"must be from 1 to {LARGEST_PAGE}"))
    return min(asked or default, LARGEST_PAGE)


def number_in(page_token: str) -> int:
    """The number that is our token, 0 for none. Fault malformed_request for a text that no page ended with (EDG-2)."""
    if not page_token:
        return 0
    if not (page_token.isascii() and page_token.isdecimal() and len(page_token) < 19):
        raise _foreign()
    return int(page_token)


def id_in(page_token: str) -> str:
    """The id of 26 letters and digits that is our token, "" for none. Fault malformed_request for any other text."""
    if page_token and not (page_token.isascii() and page_token.isalnum() and len(page_token) == ID_LENGTH):
        raise _foreign()
    return page_token


def _foreign() -> Fault:
    return Fault.of("malformed_request", "page_token is none that a page gave; begin without it")


async def page_within(look: Look[M], token: str, size: int, most: int = LARGEST_PAGE_BYTES) -> tuple[list[M], str]:
    """(at most `size` rows of together at most `most` bytes, the first one whatever it has; the token of what follows).

    Rows are looked at in portions, the first a small one and later ones as large as those before let expect: so much
    and not a whole page of the largest rows is in memory.
    """
    found: list[M] = []
    filled, portion = 0, FIRST_LOOK
    while True:
        some, following = await look(token, min(portion, size - len(found)))
        for place, row in enumerate(some):
            filled += row.ByteSize()
            if filled > most and (found or place):
                if not place:
                    return found, token
                some, following = await look(token, place)
                return [*found, *some], following
        found += some
        if not following or len(found) >= size:
            return found, following
        token, portion = following, max(1, (most - filled) * len(found) // max(1, filled))
