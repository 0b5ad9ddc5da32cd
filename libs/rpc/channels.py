"""Which context lives where: one channel per context, opened at first use, closed together.

`PEER_<CONTEXT>` (for example `PEER_COST_QUOTE=unix:/run/pointsman/cost_quote.sock`) places a context; what is not
placed is in this process. That setting is the whole difference between one process and seven, or fourteen: several
addresses with commas between them, or a name with several records, are replicas, and calls are spread over them.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from grpc import aio
from opentelemetry import trace

from libs.rpc.address import LOOPBACK, Address, Transport, parse_peer
from libs.rpc.channel import open_channel
from libs.rpc.limits import ANSWER_LIMIT_BYTES, MESSAGE_LIMIT_BYTES
from libs.rpc.loopback import PROCESS, LoopbackRegistry
from libs.rpc.outgoing import OutgoingChannel
from libs.rpc.tls import Tls

PREFIX = "PEER_"


class Channels:
    """The doors to all contexts, as one context (`caller`) or as nobody in particular."""

    def __init__(
        self,
        addresses: Mapping[str, Address] | None = None,
        *,
        registry: LoopbackRegistry = PROCESS,
        caller: str = "",
        tls: Tls | None = None,
        message_limit_bytes: int = MESSAGE_LIMIT_BYTES,
        answer_limit_bytes: int = ANSWER_LIMIT_BYTES,
        tracer: trace.Tracer | None = None,
    ) -> None:
        self._addresses = dict(addresses or {})
        self._registry = registry
        self._caller = caller
        self._tls = tls
        self._limits = message_limit_bytes, answer_limit_bytes
        self._tracer = tracer
        self._open: dict[tuple[Address, str], aio.Channel] = {}
        self._outgoing: dict[str, OutgoingChannel] = {}

    @classmethod
    def from_env(
        cls,
        env: Mapping[str, str],
        *,
        registry: LoopbackRegistry = PROCESS,
        caller: str = "",
        tls: Tls | None = None,
    ) -> "Channels":
        """Read every `PEER_<CONTEXT>`. ValueError names the variable whose value is no address."""
        addresses = {}
        for name, value in env.items():
            if name.startswith(PREFIX) and value.strip():
                try:
                    addresses[name.removeprefix(PREFIX).lower()] = parse_peer(value)
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
        return cls(addresses, registry=registry, caller=caller, tls=tls)

    def address(self, context: str) -> Address:
        """Where that context lives."""
        return self._addresses.get(context, LOOPBACK)

    def to(self, context: str) -> aio.Channel:
        """The channel to that context, for `XxxServiceStub(channels.to("routing"))`."""
        channel = self._outgoing.get(context)
        if channel is None:
            address = self.address(context)
            # By TLS the other side is asked to be this context, so each context has a connection of its own.
            place = address, context if self._tls is not None and address.transport is Transport.TCP else ""
            inner = self._open.get(place)
            if inner is None:
                inner = open_channel(address, self._registry, self._tls, context, *self._limits)
                self._open[place] = inner
            channel = self._outgoing[context] = OutgoingChannel(inner, self._caller, self._tracer)
        return channel

    def for_caller(self, caller: str) -> "Channels":
        """The same doors and connections, used by that context: its calls say so."""
        view = Channels(
            self._addresses,
            registry=self._registry,
            caller=caller,
            tls=self._tls,
            message_limit_bytes=self._limits[0],
            answer_limit_bytes=self._limits[1],
            tracer=self._tracer,
        )
        view._open = self._open
        return view

    async def close(self, grace_s: float | None = None) -> None:
        """Close every channel; calls in flight have `grace_s` seconds to end."""
        while self._open:
            _, channel = self._open.popitem()
            await channel.close(grace_s)
        self._outgoing.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
