"""What can be known before anything is started: settings that make sense, a data directory, free ports.

The one who holds the data directory is named first: a second start of the same stack would find every port taken too,
and that is not what is wrong.
"""

import errno
import fcntl
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from libs.host.placement import DEFAULT_GRPC, placement
from libs.rpc.address import Transport, parse
from services.__main__ import BUILDERS
from services.edge.settings import parse_address

STUDIO_HOST = "127.0.0.1"
DEFAULT_HTTP = "127.0.0.1:8080"


class StackError(Exception):
    """The stack cannot start; the text says why and what to do."""


class SettingError(StackError):
    """A setting makes no sense."""


def check_settings(env: Mapping[str, str]) -> None:
    """SettingError, or PlacementError, for what cannot be meant. Touches nothing."""
    try:
        parse_address(env.get("POINTSMAN_HTTP") or DEFAULT_HTTP)
    except ValueError as error:
        raise SettingError(f"--http: {_plain(error)}") from None
    try:
        parse(env.get("POINTSMAN_GRPC") or DEFAULT_GRPC)
    except ValueError as error:
        raise SettingError(f"--grpc: {_plain(error)}") from None
    placement(env, available=BUILDERS)


def _plain(error: ValueError) -> str:
    return str(error).removeprefix("POINTSMAN_HTTP: ")


def prepare_data(data: Path) -> None:
    """Make the data directory. StackError if that cannot be, or if a running stack has it."""
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is no directory" if isinstance(error, FileExistsError) else error.strerror
        raise StackError(f"the data directory {data} cannot be made: {why}; choose another with --data") from error
    if not os.access(data, os.W_OK | os.X_OK):
        raise StackError(f"the data directory {data} cannot be written to; choose another with --data")
    holder = holder_of(data)
    if holder:
        raise StackError(
            f"the data directory {data} is in use by a running stack, process {holder}; "
            "stop that one, or choose another directory with --data"
        )


def holder_of(data: Path) -> str:
    """The pid of the process whose database works in this data directory; "" if there is none."""
    try:
        descriptor = os.open(data / "postgres" / "lock", os.O_RDONLY)
    except OSError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
    finally:
        os.close(descriptor)
    return ""


def check_ports(env: Mapping[str, str], studio_port: int | None) -> None:
    """StackError that names the flag of every port that somebody else has. None: no local providers are wanted."""
    taken = [
        f"{host}:{port} ({what}) {why}; choose another with {flag}"
        for what, flag, host, port in _ports(env, studio_port)
        if (why := unusable(host, port))
    ]
    if taken:
        raise StackError("\n".join(taken))


def _ports(env: Mapping[str, str], studio_port: int | None) -> Iterator[tuple[str, str, str, int]]:
    yield "HTTP", "--http", *parse_address(env.get("POINTSMAN_HTTP") or DEFAULT_HTTP)
    grpc = parse(env.get("POINTSMAN_GRPC") or DEFAULT_GRPC)
    if grpc.transport is Transport.TCP:
        yield "gRPC", "--grpc", grpc.host, grpc.port
    if studio_port is not None:
        yield "the local providers", "--studio-port", STUDIO_HOST, studio_port


def unusable(host: str, port: int) -> str:
    """Why nobody can listen there, "" where one can. Port 0 is any free port."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return "is no address of this machine"
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            return "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
    return ""
