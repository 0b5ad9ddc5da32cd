"""A server that does exactly what a test says with each request, so that nothing is hidden by a framework."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

Act = Callable[[asyncio.StreamWriter], Awaitable[bool]]
"""What to do after a whole request was read; True keeps the connection."""


def answers(status: str, body: bytes = b"{}", *headers: str, length: int | None = None) -> Act:
    """Answer and keep the connection."""

    async def act(writer: asyncio.StreamWriter) -> bool:
        promised = len(body) if length is None else length
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {promised}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()
        return promised == len(body)

    return act


def streams(*parts: bytes, then: Act | None = None, broken: bool = False) -> Act:
    """Answer with these events, chunked, and end the body (`broken`: leave it open; `then`: do that first)."""

    async def act(writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in parts:
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        if then is not None:
            return await then(writer)
        if not broken:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return not broken

    return act


async def drops(writer: asyncio.StreamWriter) -> bool:
    """Close without a word."""
    return False


async def resets(writer: asyncio.StreamWriter) -> bool:
    """Abort the connection."""
    writer.transport.abort()
    return False


async def babbles(writer: asyncio.StreamWriter) -> bool:
    """Answer something that is not HTTP."""
    writer.write(b"SSH-2.0-nothing\r\n\r\n")
    await writer.drain()
    return False


@dataclass
class RawServer:
    """Acts in turn on the requests that it reads, the last act for all further ones. `requests` holds their heads."""

    acts: list[Act]
    requests: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    _readers: dict[asyncio.StreamWriter, asyncio.StreamReader] = field(default_factory=dict)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        """The base URL."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def silent(self, writer: asyncio.StreamWriter) -> bool:
        """Say nothing until the test is over."""
        await self.released.wait()
        return False

    async def hung_up(self, writer: asyncio.StreamWriter) -> bool:
        """Wait until the other side has closed the connection, and tell it by `left`."""
        await self._readers[writer].read()
        self.left.set()
        return False

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self.released.set()
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._readers[writer] = reader
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lengths = [line.split(":")[1] for line in head.lower().split("\r\n") if line.startswith("content-length")]
        body = await reader.readexactly(int(lengths[0])) if lengths else b""
        act = self.acts[min(len(self.requests), len(self.acts) - 1)]
        self.requests.append(head)
        self.bodies.append(body)
        self.heard.set()
        return await act(writer)
