"""The HTTP port: uvicorn inside our own loop, started and stopped by the context, with no signal handler of its own."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from libs.faults.fault import Fault
from services.edge import problems
from services.edge.routes.presence import PARTING

START_S = 10.0
LAST_WORDS_S = 0.75
POLL_S = 0.005
KEEP_ALIVE_S = 30
BACKLOG = 2048
HEAD_LIMIT_BYTES = 64 * 1024

log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """Signals belong to the host of the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Telling(HttpToolsProtocol):
    """uvicorn's protocol, but it is the `Parting` of its requests, which are served one after the other."""

    _left: Callable[[], None] | None = None

    def tell(self, left: Callable[[], None] | None) -> None:
        """See the protocol."""
        self._left = left
        if left is not None:
            self.flow.resume_reading()  # or the end of the connection would not be seen
            if self.transport.is_closing():
                self.loop.call_soon(self._part)

    def on_message_begin(self) -> None:
        """A request begins: it is told where to ask."""
        super().on_message_begin()
        self.scope[PARTING] = self  # type: ignore[literal-required]  # for our own application

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        super().connection_lost(exc)
        self._part()
        if self.scope is not None:  # no circle for the collector of garbage; who asks now is told by `receive`
            self.scope.pop(PARTING, None)  # type: ignore[misc]  # for our own application

    def _part(self) -> None:
        left, self._left = self._left, None
        if left is not None:
            left()


class _Waiting(_Telling):
    """The same, but it does not wait for ever for a client that has begun a request, or a connection, and falls silent.

    What waits for us (a body that nobody reads yet) is no silence of the client's.
    """

    patience_s: float
    _in_head = False
    _in_body = False
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A client is here, and says nothing yet."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """More of a head must come in the time of its first bytes; more of a body begins the time anew."""
        super().data_received(data)
        if not (self._in_head or self._in_body):
            self._wait_no_more()
        elif self._in_body or self._timer is None:
            self._wait()

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """A body begins, if only an empty one."""
        self._in_head, self._in_body = False, True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._in_body = False
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will come."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._wait_no_more()
        if not self.transport.is_closing():
            self._timer = self.loop.call_later(self.patience_s, self._impatient)

    def _wait_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _impatient(self) -> None:
        if self.flow.read_paused:
            self._wait()
        else:
            self.transport.close()


class _HeadTooLarge(Exception):
    """Raised into the parser, which takes it for bytes that are no HTTP."""


class _Bounded(_Waiting):
    """The same, but heads end, and so does what a chunked body says between its content. Trailers are no headers."""

    _said_bytes = 0
    """Of a head so far, or of a body's framing since its last byte of content."""
    _read_bytes = 0
    _content_came = False

    def data_received(self, data: bytes) -> None:
        """More of a request."""
        self._read_bytes, self._content_came = len(data), False
        super().data_received(data)
        if self._in_head or self._in_body:
            self._said_bytes = 0 if self._content_came else self._said_bytes + len(data)
            if self._said_bytes > HEAD_LIMIT_BYTES and not self.transport.is_closing():
                self.send_400_response("")

    def on_message_begin(self) -> None:
        """A head begins."""
        self._said_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or behind a body a trailer, which nobody reads."""
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A head is whole; it may have come in one piece, with a body behind it."""
        if self._said_bytes + self._read_bytes > HEAD_LIMIT_BYTES:
            self._said_bytes = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if self._said_bytes > HEAD_LIMIT_BYTES:
                raise _HeadTooLarge
        self._said_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some content."""
        self._content_came = True
        super().on_body(body)

    def _told_too_much(self) -> str:
        """What is wrong with what was said so far, "" for nothing."""
        if self._said_bytes <= HEAD_LIMIT_BYTES:
            return ""
        where = "body of the request has between its content" if self._in_body else "head of the request has"
        return f"the {where} more than {HEAD_LIMIT_BYTES} bytes"


def _protocol(new_id: Callable[[], str], patience: float) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, but bytes that are no HTTP get a problem too (EDG-3), and so does a head without end."""

    class Protocol(_Bounded):
        patience_s = patience

        def send_400_response(self, msg: str) -> None:
            if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
                self.transport.close()  # an answer is on its way: nothing can be told in the middle of it
                return
            request_id = new_id()
            reason = self._told_too_much() or "these bytes are no HTTP request"
            fault = Fault.of("malformed_request", reason)
            status, headers, body = problems.answer(fault, request_id)
            told = {**headers, "x-request-id": request_id, "content-length": str(len(body)), "connection": "close"}
            head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
            self.transport.write(f"HTTP/1.1 {status} Bad Request\r\n{head}\r\n".encode() + body)
            self.transport.close()

    return Protocol


class Listener:
    """One port. `start` returns when it is open; `url` is then where."""

    def __init__(
        self,
        app: Any,
        host: str,
        port: int,
        new_id: Callable[[], str],
        drain_s: float,
        patience_s: float,
    ) -> None:
        self._host = host
        self._port = port
        self._drain_s = max(1, round(drain_s))
        self._server = _Server(
            uvicorn.Config(
                app,
                http=_protocol(new_id, patience_s),
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                log_level="warning",
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=self._drain_s,
            )
        )
        self._serving: asyncio.Task[None] | None = None
        self.address: tuple[str, int] = (host, port)

    @property
    def url(self) -> str:
        """Where the port is, for people of this machine."""
        host, port = self.address
        shown = "127.0.0.1" if host in ("0.0.0.0", "") else "[::1]" if host == "::" else host
        return f"http://{f'[{shown}]' if ':' in shown and not shown.startswith('[') else shown}:{port}"

    async def start(self) -> None:
        """Open the port. OSError names the address if that cannot be."""
        opened = self._open()
        self.address = (self._host, opened.getsockname()[1])
        self._serving = asyncio.create_task(self._server.serve([opened]), name="edge http")
        async with asyncio.timeout(START_S):
            while not self._server.started:
                if self._serving.done():
                    self._serving.result()
                await asyncio.sleep(POLL_S)  # uvicorn has no event for it
        log.info("http_listening", extra={"url": self.url})

    async def stop(self, last_words: Callable[[], None] = lambda: None) -> None:
        """Close the port, let requests in hand finish within the time that was set, cut the rest; shortly before that,
        `last_words`."""
        if self._serving is None:
            return
        self._server.should_exit = True
        speaking = asyncio.get_running_loop().call_later(max(0.0, self._drain_s - LAST_WORDS_S), last_words)
        await asyncio.gather(self._serving, return_exceptions=True)
        speaking.cancel()
        self._serving = None

    def _open(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        opened = socket.socket(family, socket.SOCK_STREAM)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind((self._host, self._port))
            opened.listen(BACKLOG)
            opened.setblocking(False)
        except OSError as error:
            opened.close()
            raise OSError(f"cannot listen on {self._host}:{self._port}: {error.strerror or error}") from error
        return opened
