"""Mutual TLS between contexts: who a context is stands in its certificate, wherever it lives.

Laws of this file:
- a certificate names contexts, not machines: DNS name `<context>.<domain>` (an underscore is written as a hyphen) or
  URI `spiffe://<domain>/<context>`; a process that hosts several contexts has a certificate that names them all;
- a caller expects of the other side the name of the context that it calls, so addresses may be numbers and lists;
- new certificates hold for the next connection on both sides; what is connected stays so, and no call is cut off.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from grpc import aio

DOMAIN = "pointsman.internal"
CERTIFIED = "x509_pem_cert"
"""What gRPC's `auth_context()` has of a peer that showed a certificate which our authorities signed."""
RETIRED_S = 3600.0
"""How long a connection by old certificates is kept for the calls that are under way; longer than any deadline."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM texts: the own chain, its key, and the authorities that the other side's certificate may be signed by."""

    chain: bytes
    key: bytes = field(repr=False)
    authorities: bytes


class Tls:
    """The certificates in force. `generation` grows when they are renewed."""

    def __init__(self, certificates: Certificates, domain: str = DOMAIN) -> None:
        self._now = certificates
        self.domain = domain
        self.generation = 0

    def renew(self, certificates: Certificates) -> None:
        """Use these for every connection from now on."""
        self._now = certificates
        self.generation += 1

    def server_credentials(self) -> grpc.ServerCredentials:
        """For ports of contexts: a client shows a certificate of our authorities, or there is no connection."""
        return grpc.dynamic_ssl_server_credentials(self._for_servers(), self._for_servers, True)

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """For one channel; they are those of now."""
        return grpc.ssl_channel_credentials(self._now.authorities, self._now.key, self._now.chain)

    def server_name(self, context: str) -> str:
        """The DNS name that the certificate of that context must have."""
        return f"{context.replace('_', '-')}.{self.domain}"

    def contexts(self, dns: Iterable[str], uris: Iterable[str]) -> frozenset[str]:
        """The contexts that a certificate with these names is for; names of anything else are passed over."""
        suffix, prefix = f".{self.domain}", f"spiffe://{self.domain}/"
        by_dns = (name.removesuffix(suffix) for name in dns if name.endswith(suffix))
        by_uri = (uri.removeprefix(prefix) for uri in uris if uri.startswith(prefix))
        return frozenset(name.replace("-", "_") for name in (*by_dns, *by_uri))

    def certified(self, authenticated: Mapping[str, Iterable[bytes]]) -> frozenset[str] | None:
        """The contexts that a peer has proved to be, by gRPC's `auth_context()`; None if it showed no certificate."""
        if CERTIFIED not in authenticated:
            return None
        dns, uris = (
            [name.decode(errors="replace") for name in authenticated.get(kind, ())] for kind in ("peer_dns", "peer_uri")
        )
        return self.contexts(dns, uris)

    def _for_servers(self) -> grpc.ServerCertificateConfiguration:
        now = self._now
        return grpc.ssl_server_certificate_configuration([(now.key, now.chain)], now.authorities)


class RenewingChannel(aio.Channel):
    """A channel that is opened anew when certificates are: stubs that were made before go on with the new one."""

    def __init__(self, tls: Tls, opening: Callable[[], aio.Channel], retired_s: float = RETIRED_S) -> None:
        self._tls = tls
        self._opening = opening
        self._retired_s = retired_s
        self._generation = tls.generation
        self._inner = opening()
        self._retired: dict[aio.Channel, asyncio.TimerHandle] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def current(self) -> aio.Channel:
        """The channel by the certificates of now."""
        if self._generation != self._tls.generation:
            self._generation = self._tls.generation
            old, self._inner = self._inner, self._opening()
            loop = asyncio.get_running_loop()
            self._retired[old] = loop.call_later(self._retired_s, self._let_go, old)
        return self._inner

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A callable for that method, as generated stubs ask for it."""
        return _Renewing(self, "unary_unary", method, args, kwargs)

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A callable for that method, as generated stubs ask for it."""
        return _Renewing(self, "unary_stream", method, args, kwargs)

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A callable for that method, as generated stubs ask for it."""
        return _Renewing(self, "stream_unary", method, args, kwargs)

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A callable for that method, as generated stubs ask for it."""
        return _Renewing(self, "stream_stream", method, args, kwargs)

    async def close(self, grace: float | None = None) -> None:
        """Close it, and what was kept for calls under way."""
        for old, timer in self._retired.items():
            timer.cancel()
            await old.close(grace)
        self._retired.clear()
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """The current channel's state."""
        return self.current().get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait on the current channel."""
        await self.current().wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until the current channel is ready."""
        await self.current().channel_ready()

    async def __aenter__(self) -> "RenewingChannel":
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    def _let_go(self, old: aio.Channel) -> None:
        self._retired.pop(old, None)
        closing = asyncio.ensure_future(old.close(None))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


class _Renewing:
    """The callable of one method, made again for each channel that the method is called on."""

    __slots__ = ("_args", "_channel", "_kind", "_kwargs", "_made", "_method", "_on")

    def __init__(
        self, channel: RenewingChannel, kind: str, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self._channel = channel
        self._kind = kind
        self._method = method
        self._args = args
        self._kwargs = kwargs
        self._on: aio.Channel | None = None
        self._made: Any = None

    def __call__(self, *given: Any, **options: Any) -> Any:
        channel = self._channel.current()
        if channel is not self._on:
            self._made = getattr(channel, self._kind)(self._method, *self._args, **self._kwargs)
            self._on = channel
        return self._made(*given, **options)
