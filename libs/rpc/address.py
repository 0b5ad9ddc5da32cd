"""Where a context lives: `loopback:`, `unix:/path` or `dns:///host:port`. A setting, never an architecture.

A context with several replicas lives at several addresses: `unix:/run/a.sock,unix:/run/b.sock` or
`10.0.0.1:50051,10.0.0.2:50051`; or at one name with several records, which is what orchestrators give.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address


class Transport(StrEnum):
    """The three ways to a context."""

    LOOPBACK = "loopback"
    UNIX = "unix"
    TCP = "tcp"


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address. `target` is gRPC's target (`unix:/run/p.sock`, `dns:///host:50051`), "" for loopback.

    `port` is 0 except for TCP, where 0 asks a server for any free port. `replicas` are the addresses of a list, each by
    itself; nobody listens on a list.
    """

    transport: Transport
    target: str
    host: str = ""
    port: int = 0
    replicas: tuple["Address", ...] = ()

    @property
    def listen(self) -> str:
        """The address in the spelling that a gRPC server listens on: `unix:/path` or `host:port`."""
        if self.transport is Transport.UNIX:
            return self.target
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def may_be_several(self) -> bool:
        """Whether more than one server may answer: a list, or a name, which may have several records."""
        return bool(self.replicas) or (self.transport is Transport.TCP and not _number(self.host))

    @property
    def is_of_this_machine(self) -> bool:
        """Whether nobody on another machine can reach it."""
        if self.transport is not Transport.TCP:
            return True
        return self.host == "localhost" or (bool(_number(self.host)) and ip_address(self.host).is_loopback)

    def __str__(self) -> str:
        return ",".join(map(str, self.replicas)) or self.target or "loopback:"


LOOPBACK = Address(Transport.LOOPBACK, "")


def parse(text: str) -> Address:
    """`loopback:`, `unix:/path`, `dns:///host:port`, or plain `host:port`. ValueError names what is wrong with it."""
    text = text.strip()
    if text in ("loopback:", "loopback"):
        return LOOPBACK
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        if not path or "," in path:
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


def parse_peer(text: str) -> Address:
    """Where callers find a context: one address, or several with commas between them, all of one sort.

    gRPC itself spreads calls over them; it takes lists of sockets and of numbers, but one name only. ValueError as in
    `parse`.
    """
    parts = [part for part in text.split(",") if part.strip()]
    if len(parts) < 2:
        return parse(text.strip().strip(","))
    return _together([parse(part) for part in parts], text.strip())


def _together(replicas: Sequence[Address], text: str) -> Address:
    if all(replica.transport is Transport.UNIX for replica in replicas):
        paths = ",".join(replica.target.removeprefix("unix:") for replica in replicas)
        return Address(Transport.UNIX, f"unix:{paths}", replicas=tuple(replicas))
    for version, scheme in ((4, "ipv4"), (6, "ipv6")):
        if all(replica.transport is Transport.TCP and _number(replica.host) == version for replica in replicas):
            numbers = ",".join(replica.listen for replica in replicas)
            return Address(Transport.TCP, f"{scheme}:{numbers}", replicas=tuple(replicas))
    raise ValueError(
        f"{text!r} is no list of replicas; say unix:/a.sock,unix:/b.sock or 10.0.0.1:50051,10.0.0.2:50051, "
        "or one name with several records: dns:///host:port"
    )


def _number(host: str) -> int:
    """4 or 6 for a host that is an IP address, 0 for a name."""
    try:
        return ip_address(host).version
    except ValueError:
        return 0
