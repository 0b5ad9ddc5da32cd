"""The stack that the demonstration plays on: a child process of its own, on free ports, with fresh data.

It dies with the demonstration, also when that is killed, so that nothing is left and the next one starts anew.
"""

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cli.api import Api
from cli.demo.descent import descent, still_there
from libs.host.identity import direct

START_S = 60.0
STOP_S = 30.0
CATALOG = Path(__file__).with_name("catalog.yaml")


class StageError(Exception):
    """The stack did not come up, or its story does not get on; the text says where to look."""


class Stage:
    """`async with Stage(folder) as stage`: `stage.api` is the product, `stage.lab` the providers' control."""

    def __init__(self, folder: Path, catalog: Path = CATALOG, more: Mapping[str, str] | None = None) -> None:
        """`more` are settings of the stack."""
        self.folder = folder
        self._catalog = catalog
        self._more = dict(more or {})
        self.data = folder / f"stack-{os.getpid()}"
        self.log = folder / "stack.log"
        self._ports = free_ports(3)
        self._process: asyncio.subprocess.Process | None = None
        self.url = f"http://127.0.0.1:{self._ports[0]}"
        self.api = Api(self.url, "")
        self.lab = Api(f"http://127.0.0.1:{self._ports[2]}", "")

    async def __aenter__(self) -> "Stage":
        self.folder.mkdir(parents=True, exist_ok=True)
        for earlier in self.folder.glob("stack-*"):
            shutil.rmtree(earlier, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        try:
            await self.start()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()
        await self._stop()

    async def start(self) -> None:
        """Return when the stack is ready and both doors are open. StageError if it does not come up."""
        await self._start()
        key = (self.data / "admin.key").read_text(encoding="utf-8").strip()
        self.api = await Api(self.url, key).__aenter__()
        await self.lab.__aenter__()

    async def kill(self) -> int:
        """kill -9 of every process at once, database and providers included; how many they were. `start` goes on with
        the same data on the same ports. StageError if one stays."""
        assert self._process is not None, "only what was started is killed"
        await self._close()
        everything = await descent(self._process.pid)
        for pid in everything:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await self._process.wait()
        left = await wait_until(lambda: still_there(everything), lambda found: not found, seconds=STOP_S)
        if left:
            raise StageError(f"processes {sorted(left)} did not die of kill -9")
        return len(everything)

    async def _close(self) -> None:
        await self.api.__aexit__()
        await self.lab.__aexit__()

    async def restart(self, meanwhile: Callable[[], None]) -> None:
        """Stop the stack, do something to what it left behind, and start it again on the same ports."""
        await self._stop()
        meanwhile()
        await self._start()

    async def _start(self) -> None:
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        http, grpc, studio = self._ports
        arguments = ("--http", f"127.0.0.1:{http}", "--grpc", f"127.0.0.1:{grpc}", "--studio-port", str(studio))
        verb = ("up", "--data", str(self.data), *arguments, "--catalog", str(self._catalog), "--ready-file", str(ready))
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *direct().command(Path(sys.executable), ["-m", "cli", *verb], signal.SIGKILL),
                env={**stage_environment(os.environ), **self._more},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            async with asyncio.timeout(START_S):
                while not ready.exists():
                    if self._process.returncode is not None:
                        raise StageError(f"the stack ended at once; {self.log} says why")
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise StageError(f"the stack was not ready after {START_S:g} s; {self.log} says more") from None

    async def _stop(self) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    @property
    def exit_code(self) -> int | None:
        """How the stack ended, once it has."""
        return self._process.returncode if self._process else None


def stage_environment(outer: Mapping[str, str]) -> dict[str, str]:
    """The child's environment: nothing of the caller's own Pointsman settings, and local providers allowed."""
    kept = {name: value for name, value in outer.items() if not name.startswith(("POINTSMAN_", "PEER_", "LISTEN_"))}
    return {**kept, "POINTSMAN_ALLOW_PRIVATE_URLS": "1", "POINTSMAN_LOG_LEVEL": "warning"}


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses now. Somebody may take one before we do; then the start fails and says so."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in sockets]
    finally:
        for item in sockets:
            item.close()


async def wait_until(look: Any, done: Any, *, seconds: float, every: float = 0.1) -> Any:
    """Look again and again until `done(seen)`; answers what was seen last, done or not."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        seen = await look()
        if done(seen) or loop.time() >= end:
            return seen
        await asyncio.sleep(every)
