"""Who is asked for names."""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

AT_ONCE = 8


class UnknownName(Exception):
    """Nobody knows the name, or nobody answered."""


class Names(Protocol):
    """The lookup of names. Two calls may answer differently: whoever judges an answer uses that very answer."""

    async def addresses(self, host: str) -> Sequence[str]:
        """Every address of a host, in numbers, at least one. UnknownName."""
        ...


class SystemNames:
    """`Names` as this machine's resolver answers, in threads of its own: names that nobody answers must not take the
    threads of everything else."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="names")

    async def addresses(self, host: str) -> Sequence[str]:
        """See the port."""
        look = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._threads, look)
        except (OSError, UnicodeError) as error:
            raise UnknownName(host) from error
        numbers = tuple(dict.fromkeys(str(address[0]) for *_, address in found))
        if not numbers:
            raise UnknownName(host)
        return numbers
