"""Puts a studio together and serves it on one port.

`/{account}/api/v3` or `/{account}/v1` is an account in its dialect; the un-prefixed `/api/v3` and `/v1` belong to the
default account of each dialect; `/lab` is the control surface.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from types import TracebackType

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from services.studio.desk import Desk
from services.studio.domain.refusals import Reason, Refusal
from services.studio.renders import Renders
from services.studio.routes.connection import CuttableProtocol
from services.studio.routes.door import Call, Door, Handler
from services.studio.routes.lab import BASES, LabRoutes
from services.studio.routes.menu import menu
from services.studio.routes.works import WorkRoutes
from services.studio.settings import StudioConfig

DRAIN_S = 2


class Studio:
    """A running studio: `async with Studio(config, data) as studio: studio.base_url("aurora")`.

    `port` 0 takes a free one. Jobs, files and the ledger live under `data`; fault rules and changed settings do not
    outlive the process. Raises OSError when the port is taken.
    """

    def __init__(self, config: StudioConfig, data: Path, host: str = "127.0.0.1", port: int = 0) -> None:
        self._config = config
        self._data = data
        self._host, self._port = host, port
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Studio:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """Where the studio answers, without a path."""
        return f"http://{self._host}:{self._port}"

    def base_url(self, account_id: str) -> str:
        """The account's base URL as a catalogue wants it, version prefix included."""
        return f"{self.url}/{account_id}{BASES[self._config.accounts[account_id].dialect]}"

    def key(self, account_id: str) -> str:
        """The account's configured key."""
        return self._config.accounts[account_id].key

    async def start(self) -> None:
        """Listens and takes up unfinished jobs; returns when requests are answered."""
        listener = _listener(self._host, self._port)
        try:
            self._desk = Desk(self._config, self._data)
            if self._desk.shelf.talker is not None:
                await asyncio.to_thread(self._desk.shelf.talker.load)
        except BaseException:
            listener.close()
            raise
        self._port = listener.getsockname()[1]
        self._renders = Renders(self._desk)
        self._renders.start()
        self._server = _Server(_uvicorn_config(self._application()))
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]), name="studio-server")
        await self._server.up.wait()

    async def stop(self) -> None:
        """Stops answering, lets go of work under way (a restart takes it up) and closes the archive."""
        if self._server is None or self._serving is None:
            return
        self._server.leaving.set()
        await self._serving
        await self._renders.stop()
        self._desk.archive.close()
        self._server = self._serving = None

    async def _reset(self) -> None:
        await self._renders.stop()
        self._desk.reset()

    def _application(self) -> Starlette:
        lab = LabRoutes(self._desk, self._renders, self._reset)
        routes: list[BaseRoute] = [Route("/", self._index), Route("/healthz", self._index), *lab.routes()]
        for account_id in self._config.accounts:
            routes += self._account_routes(account_id, f"/{account_id}")
        for account_id in self._config.defaults.values():
            routes += self._account_routes(account_id, "")
        return Starlette(routes=routes)

    def _account_routes(self, account_id: str, prefix: str) -> list[BaseRoute]:
        dialect = self._config.accounts[account_id].dialect
        base = prefix + BASES[dialect]
        door = Door(self._desk, account_id)
        routes: list[BaseRoute] = [
            Route(base + path, _endpoint(door, prefix, handler, submits=not path.endswith("/cancel")), methods=[method])
            for method, path, handler in menu(dialect, self._desk, self._renders)
        ]
        every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        if prefix:
            file = _endpoint(door, prefix, WorkRoutes(self._desk).file, open_to_all=True)
            routes.append(Route(prefix + "/files/{name}", file))  # before everything else below a base without a path
        routes.append(Route(base + "/{rest:path}", _endpoint(door, prefix, _nothing_here), methods=every))
        return routes

    async def _index(self, request: Request) -> Response:
        return JSONResponse({"studio": "ok", "accounts": {name: self.base_url(name) for name in self._config.accounts}})


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: whoever starts the studio decides what a signal means."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()
        self.leaving = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.leaving.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _listener(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listener


def _uvicorn_config(application: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=CuttableProtocol,
        ws="none",
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        date_header=False,  # uvicorn renews it by waking every 0.1 s; the studio sleeps when idle
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=DRAIN_S,
    )


def _endpoint(
    door: Door, prefix: str, handler: Handler, *, open_to_all: bool = False, submits: bool = True
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        path = request.url.path.removeprefix(prefix)
        return await door.serve(request, path, handler, open_to_all=open_to_all, submits=submits)

    return endpoint


async def _nothing_here(call: Call) -> Response:
    raise Refusal(Reason.ROUTE_UNKNOWN, f"There is no {call.request.method} {call.path}.")
