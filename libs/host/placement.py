"""What one process hosts and where it listens, read from the environment. Pure: no file, no socket.

| variable | means | absent |
|---|---|---|
| PEER_<CONTEXT> | where callers find it: `loopback:`, `unix:/path`, `dns:///host:port`, or several | loopback: |
| LISTEN_<CONTEXT> | where it listens, if that is not PEER_<CONTEXT> (a replica, a load balancer) | PEER_<CONTEXT> |
| POINTSMAN_GRPC | the gRPC address of a process without names, public if the edge is in it | 127.0.0.1:50051 |
| POINTSMAN_ADMIN | the address of channelz; `off` for none | unix:DATA/admin.sock |
| POINTSMAN_METRICS | host:port where this process shows its metrics to Prometheus | the edge's /metrics alone |
| POINTSMAN_DATA | the data directory | ./.pointsman |
| POINTSMAN_DATABASE_URL | PostgreSQL, or `memory:` | embedded, under the data directory |
| POINTSMAN_TLS_CERT, _KEY, _CA | PEM files: contexts speak mutual TLS over TCP, and prove who they are | plain |
| POINTSMAN_TLS_DOMAIN | what follows the name of a context in certificates | pointsman.internal |
| POINTSMAN_DRAIN_S | how long calls and ticks in hand may take at a stop | 10 |
| POINTSMAN_DRAIN_LAG_S | how long load balancers need to notice that we do not serve | 0 |

A process that is given no names hosts every context that lives here, that is, whose PEER_ is loopback. One that is
given names hosts exactly those, and listens for each on its own address.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from libs.rpc.address import LOOPBACK, Address, Transport, parse, parse_peer
from libs.rpc.admission import MOST_OPEN, MOST_OPEN_SETTING
from libs.rpc.tls import DOMAIN

START_ORDER = ("health", "cost_quote", "capacity", "provider_adapter", "routing", "runs", "edge")
"""Leaves first: a context starts after everything that it calls."""

WITHOUT_DATABASE = frozenset({"provider_adapter"})
DATABASE_PREFIXES = ("postgresql://", "postgres://", "postgresql+asyncpg://")
MEMORY = "memory:"
DEFAULT_GRPC = "127.0.0.1:50051"
DEFAULT_DATA = "./.pointsman"
SOCKET_PATH_LIMIT = 107
TLS_VARIABLES = ("POINTSMAN_TLS_CERT", "POINTSMAN_TLS_KEY", "POINTSMAN_TLS_CA")
OWN_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"})


class PlacementError(ValueError):
    """A setting makes no sense; the text names the variable and what to say instead."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the certificates of this process lie, and the domain of the contexts' names in them."""

    chain: Path
    key: Path
    authorities: Path
    domain: str = DOMAIN

    def by_variable(self) -> tuple[tuple[str, Path], ...]:
        """Each file by the variable that names it."""
        return tuple(zip(TLS_VARIABLES, (self.chain, self.key, self.authorities), strict=True))


@dataclass(frozen=True, slots=True)
class Placement:
    """One process. `contexts` are in start order; `database_url` None means an embedded database, "" none at all."""

    contexts: tuple[str, ...]
    listen: tuple[Address, ...]
    admin: Address | None
    data: Path
    database_url: str | None
    ready_file: Path | None = None
    metrics: Address | None = None
    """Where this process shows its metrics, besides the edge's port."""
    drain_s: float = 10.0
    drain_lag_s: float = 0.0
    tenant_calls: int = MOST_OPEN
    """Calls that a tenant's users may have open at the public ports of this process; 0 = no limit."""
    public: tuple[Address, ...] = ()
    """Those of `listen` where strangers come in and show a key. All others are for contexts."""
    tls: TlsFiles | None = None
    """Mutual TLS on the TCP addresses that are for contexts, and to contexts at TCP addresses. None: plain."""


def placement(
    env: Mapping[str, str],
    names: Iterable[str] = (),
    *,
    listen: Iterable[str] = (),
    grpc: str | None = None,
    available: Iterable[str],
) -> Placement:
    """Read the environment. `names` are the contexts asked for (none: all that live here), `listen` further addresses.

    `grpc` is a public address for a process with names, whose environment others may share. Raises PlacementError.
    """
    named, known = tuple(names), tuple(available)
    for name in named:
        if name not in known:
            raise PlacementError(f"there is no context '{name}'; the contexts are {', '.join(known)}")
    peers = {name: _address(env, f"PEER_{name.upper()}", parse_peer) or LOOPBACK for name in known}
    hosted = named or tuple(name for name in known if peers[name].transport is Transport.LOOPBACK)
    if not hosted:
        raise PlacementError("every context is placed elsewhere by its PEER_ variable; name those to host here")
    tls = _tls(env)
    further = [_parsed("--listen", text) for text in listen]
    addresses = [LOOPBACK, *further]
    own = {name: address for name in named if (address := _own_address(env, name, peers[name])) is not None}
    addresses += own.values()
    public = _named_public(grpc, hosted, peers) if named else _public(env, hosted, further if tls is None else ())
    if not named:
        addresses.append(_parsed("POINTSMAN_GRPC", env.get("POINTSMAN_GRPC") or DEFAULT_GRPC))
    data = Path(env.get("POINTSMAN_DATA") or DEFAULT_DATA).absolute()
    needs_database = not WITHOUT_DATABASE.issuperset(hosted)
    return Placement(
        contexts=tuple(sorted(hosted, key=_rank)),
        listen=tuple(dict.fromkeys((*addresses, *public))),
        admin=_admin(env, data, (*named, *(_mark(own[name]) for name in own if peers[name].replicas))),
        data=data,
        database_url=_database_url(env) or (None if needs_database else ""),
        ready_file=Path(env["POINTSMAN_READY_FILE"]) if env.get("POINTSMAN_READY_FILE") else None,
        metrics=_metrics(env),
        drain_s=_seconds(env, "POINTSMAN_DRAIN_S", 10.0),
        drain_lag_s=_seconds(env, "POINTSMAN_DRAIN_LAG_S", 0.0),
        tenant_calls=_count(env, MOST_OPEN_SETTING, MOST_OPEN),
        public=public,
        tls=tls,
    )


def _public(env: Mapping[str, str], hosted: Iterable[str], further: Iterable[Address]) -> tuple[Address, ...]:
    """Where the edge is elsewhere, it and others call the address of a process without names, which is for contexts."""
    if "edge" not in hosted:
        return ()
    grpc = _parsed("POINTSMAN_GRPC", env.get("POINTSMAN_GRPC") or DEFAULT_GRPC)
    return (grpc, *(address for address in further if address.transport is Transport.TCP))


def _named_public(grpc: str | None, hosted: Iterable[str], peers: Mapping[str, Address]) -> tuple[Address, ...]:
    if not grpc:
        return ()
    if "edge" not in hosted and peers.get("edge", LOOPBACK) == LOOPBACK:
        raise PlacementError("--grpc is for callers with a key, which the edge recognises; say where it is: PEER_EDGE")
    return (_parsed("--grpc", grpc),)


def _rank(name: str) -> int:
    return START_ORDER.index(name) if name in START_ORDER else len(START_ORDER)


def _database_url(env: Mapping[str, str]) -> str:
    text = env.get("POINTSMAN_DATABASE_URL", "").strip()
    if text and text != MEMORY and not text.startswith(DATABASE_PREFIXES):
        scheme = text.split(":", 1)[0] if "://" in text else "no scheme"  # never the whole text: it may hold a password
        raise PlacementError(
            f"POINTSMAN_DATABASE_URL begins with {scheme}; expected postgresql://USER@HOST/DATABASE or {MEMORY}"
        )
    return text


def _own_address(env: Mapping[str, str], name: str, peer: Address) -> Address | None:
    own = _address(env, f"LISTEN_{name.upper()}")
    if own is not None:
        return own
    if peer.transport is Transport.LOOPBACK:
        return None
    if peer.replicas:
        raise PlacementError(
            f"PEER_{name.upper()} names {len(peer.replicas)} replicas; "
            f"say which of them this process is, for example LISTEN_{name.upper()}={peer.replicas[0]}"
        )
    if peer.transport is Transport.TCP and peer.host not in OWN_HOSTS:
        raise PlacementError(
            f"PEER_{name.upper()} is {peer}, which is how others reach {name}; "
            f"say where it listens, for example LISTEN_{name.upper()}=0.0.0.0:{peer.port}"
        )
    return peer


def _mark(own: Address) -> str:
    """What tells a replica from the others: the name of its socket, or its port."""
    return Path(own.target).stem if own.transport is Transport.UNIX else str(own.port)


def _admin(env: Mapping[str, str], data: Path, names: tuple[str, ...]) -> Address | None:
    text = env.get("POINTSMAN_ADMIN", "")
    if text == "off":
        return None
    if text:
        return _parsed("POINTSMAN_ADMIN", text)
    # Several processes may share a data directory, so each kind, and each replica, has a socket of its own.
    path = data / ("-".join(("admin", *names)) + ".sock")
    return parse(f"unix:{path}") if len(os.fsencode(path)) <= SOCKET_PATH_LIMIT else None


def _metrics(env: Mapping[str, str]) -> Address | None:
    address = _address(env, "POINTSMAN_METRICS")
    if address is not None and address.transport is not Transport.TCP:
        raise PlacementError(f"POINTSMAN_METRICS is {address}; Prometheus asks by HTTP: give it HOST:PORT")
    return address


def _tls(env: Mapping[str, str]) -> TlsFiles | None:
    given = {variable: env.get(variable, "").strip() for variable in TLS_VARIABLES}
    missing = [variable for variable, text in given.items() if not text]
    if len(missing) == len(given):
        return None
    if missing:
        raise PlacementError(
            f"{' and '.join(missing)} must be set too; mutual TLS takes a certificate, its key and a CA"
        )
    domain = env.get("POINTSMAN_TLS_DOMAIN", "").strip().strip(".") or DOMAIN
    chain, key, authorities = (Path(text).absolute() for text in given.values())
    return TlsFiles(chain, key, authorities, domain)


def _address(env: Mapping[str, str], variable: str, read: Callable[[str], Address] = parse) -> Address | None:
    text = env.get(variable, "").strip()
    return _parsed(variable, text, read) if text else None


def _parsed(variable: str, text: str, read: Callable[[str], Address] = parse) -> Address:
    try:
        return read(text)
    except ValueError as error:
        raise PlacementError(f"{variable}: {error}") from None


def _count(env: Mapping[str, str], variable: str, default: int) -> int:
    text = env.get(variable, "").strip()
    if text and not (text.isascii() and text.isdecimal() and len(text) < 8):
        raise PlacementError(f"{variable} is {text[:40]!r}; give a whole number, or 0 for no limit")
    return int(text or default)


def _seconds(env: Mapping[str, str], variable: str, default: float) -> float:
    text = env.get(variable, "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise PlacementError(f"{variable} is {text!r}; expected seconds, for example 10")
    return value
