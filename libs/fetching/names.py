"""Who is asked for names."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Protocol


class UnknownName(Exception):
    """Nobody knows the name, or nobody answered."""


class Names(Protocol):
    """The lookup of names. Two calls may answer differently: whoever judges an answer uses that very answer."""

    async def addresses(self, host: str) -> Sequence[str]:
        """Every address of a host, in numbers, at least one. UnknownName."""
        ...


class SystemNames:
    """`Names` as this machine's resolver answers."""

    async def addresses(self, host: str) -> Sequence[str]:
        """See the port."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise UnknownName(host) from error
        numbers = tuple(dict.fromkeys(str(address[0]) for *_, address in found))
        if not numbers:
            raise UnknownName(host)
        return numbers
