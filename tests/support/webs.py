"""A small web in a test: addresses of 127/8 play the public and the private world, names are scripted.

127.0.0.2 is admitted by `WEB`, 127.0.0.1 and every other address is not: the rules are the product's own with one
address turned round, so that nothing of a test leaves the machine.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from libs.fetching.addresses import Address, address_reason, host_reason
from libs.fetching.fetcher import Rules
from libs.fetching.names import UnknownName

PUBLIC, PRIVATE = "127.0.0.2", "127.0.0.1"


def _address(address: Address) -> str | None:
    return None if str(address) == PUBLIC else address_reason(address)


WEB = Rules(host=host_reason, address=_address)


@dataclass
class ScriptedNames:
    """`Names` that answers a host's list of answers in turn, the last one for ever; `asked` remembers."""

    answers: dict[str, list[Sequence[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def addresses(self, host: str) -> Sequence[str]:
        """See the port."""
        self.asked.append(host)
        answers = self.answers.get(host)
        if not answers:
            raise UnknownName(host)
        return answers.pop(0) if len(answers) > 1 else answers[0]


Page = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Site:
    """A server on one address. `pages` are answers by path, raw bytes or what writes them; `heard` the requests."""

    port: int
    pages: dict[str, bytes | Page] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one answer."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ")[1]
            self.heard.append(head)
            page = self.pages.get(path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            if isinstance(page, bytes):
                writer.write(page)
            else:
                await page(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # whoever asked has gone
        finally:
            writer.close()


def answer(content: bytes, media_type: str = "image/png", **headers: str) -> bytes:
    """A whole 200."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {len(content)}\r\n{more}\r\n"
    return head.encode() + content


def redirect(url: str, status: int = 302) -> bytes:
    """A redirect."""
    return f"HTTP/1.1 {status} Found\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n".encode()


@asynccontextmanager
async def two_sites() -> AsyncIterator[tuple[Site, Site]]:
    """(a public one, a private one), on the same port."""
    public, private = Site(0), Site(0)
    async with await asyncio.start_server(public.serve, PUBLIC, 0) as one:
        port = one.sockets[0].getsockname()[1]
        async with await asyncio.start_server(private.serve, PRIVATE, port):
            public.port = private.port = port
            yield public, private
