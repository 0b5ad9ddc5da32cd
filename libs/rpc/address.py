"""Where a context lives: `loopback:`, `unix:/path` or `dns:///host:port`. A setting, never an architecture."""

from dataclasses import dataclass
from enum import StrEnum


class Transport(StrEnum):
    """The three ways to a context."""

    LOOPBACK = "loopback"
    UNIX = "unix"
    TCP = "tcp"


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address. `target` is gRPC's target (`unix:/run/p.sock`, `dns:///host:50051`), "" for loopback.

    `port` is 0 except for TCP, where 0 asks a server for any free port.
    """

    transport: Transport
    target: str
    host: str = ""
    port: int = 0

    @property
    def listen(self) -> str:
        """The address in the spelling that a gRPC server listens on: `unix:/path` or `host:port`."""
        if self.transport is Transport.UNIX:
            return self.target
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return self.target or "loopback:"


LOOPBACK = Address(Transport.LOOPBACK, "")


def parse(text: str) -> Address:
    """`loopback:`, `unix:/path`, `dns:///host:port`, or plain `host:port`. ValueError names what is wrong with it."""
    text = text.strip()
    if text in ("loopback:", "loopback"):
        return LOOPBACK
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        if not path:
            raise ValueError(f"{text!r} names no path; say unix:/run/pointsman/health.sock")
        return Address(Transport.UNIX, f"unix:{path}")
    rest = text.removeprefix("dns:").lstrip("/") if text.startswith("dns:") else text
    host, colon, port = rest.rpartition(":")
    if (
        not colon
        or not host
        or not port.isdigit()
        or int(port) > 65535
        or "/" in host
        or (":" in host and "]" not in host)
    ):
        raise ValueError(f"{text!r} is no address; say loopback:, unix:/path or dns:///host:port")
    target = f"dns:///{rest}"
    return Address(Transport.TCP, target, host.strip("[]"), int(port))
