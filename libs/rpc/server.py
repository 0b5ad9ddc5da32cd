"""Hosts servicers: wraps them once, serves them in-process, on Unix sockets and on TCP at the same time.

Laws of this file:
- every servicer runs behind the same chain, whatever the transport; strangers' doors ask for a key in addition;
- a port that is open serves health per service name and reflection; channelz is on the admin port only;
- stopping is: not serving, stop taking calls, wait for our own register of handlers, end what is left, close.
"""

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import grpc
from grpc import aio
from grpc_channelz.v1 import channelz
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from opentelemetry import trace

from libs.rpc.address import LOOPBACK, Address, Transport
from libs.rpc.chain import Admit, HandlerChain
from libs.rpc.interceptors.callers import CallersInterceptor
from libs.rpc.interceptors.deadline import DeadlineInterceptor
from libs.rpc.interceptors.faults import FaultsInterceptor
from libs.rpc.interceptors.identity import IdentityInterceptor
from libs.rpc.interceptors.incoming import Interceptor
from libs.rpc.interceptors.telemetry import TelemetryInterceptor
from libs.rpc.limits import ANSWER_LIMIT_BYTES, MESSAGE_LIMIT_BYTES, METADATA_OPTIONS
from libs.rpc.loopback import PROCESS, LoopbackRegistry
from libs.rpc.loopback_exchange import Exchange
from libs.rpc.reflection import reflection_handlers
from libs.rpc.registrar import AddToServer, collect
from libs.rpc.running import RunningCalls
from libs.rpc.tls import Tls
from libs.telemetry import metrics as process_metrics
from libs.telemetry.metrics import Metrics

_log = logging.getLogger(__name__)
HEALTH = health.SERVICE_NAME
FLUSH_S = 0.5
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def server_options(message_limit_bytes: int, answer_limit_bytes: int) -> list[tuple[str, Any]]:
    """The arguments of every gRPC server."""
    return [
        ("grpc.max_send_message_length", answer_limit_bytes),
        ("grpc.max_receive_message_length", message_limit_bytes),
        *METADATA_OPTIONS,
        # Off, or a second process on the same port would take half of the calls in silence.
        ("grpc.so_reuseport", 0),
        # Below the clients' keepalive of 30 s, or they would be sent away for pinging too often.
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]


class RpcServer:
    """The servicers of one process (or of one group in it) and the doors on which they are served.

    `listen` are addresses; TCP with port 0 takes a free port, see `bound`. `admin` is another address, for channelz,
    health and reflection; see `bound_admin`. `assumed_deadline_s` is the deadline of strangers that set none (see
    DeadlineInterceptor). `call_limit` bounds the handlers at work; what comes above it is answered `overloaded`.
    Strangers come in at those addresses of `listen` that are in `public` too: there `admit` may wait and refuse a call
    with a Fault (the check of a key) once its identity is known. All others are for contexts: `callers` is the table of
    CallersInterceptor, without which no context is refused anything, and with `tls` TCP is mutual TLS and nothing else.
    """

    def __init__(
        self,
        listen: Sequence[Address] = (LOOPBACK,),
        *,
        registry: LoopbackRegistry = PROCESS,
        admin: Address | None = None,
        tls: Tls | None = None,
        public: Collection[Address] = (),
        callers: Mapping[str, frozenset[str]] | None = None,
        message_limit_bytes: int = MESSAGE_LIMIT_BYTES,
        answer_limit_bytes: int = ANSWER_LIMIT_BYTES,
        call_limit: int | None = None,
        assumed_deadline_s: float | None = None,
        admit: Admit | None = None,
        extra_interceptors: Iterable[Interceptor] = (),
        new_reference: Callable[[], str] = lambda: secrets.token_hex(8),
        metrics: Metrics = process_metrics.PROCESS,
        tracer: trace.Tracer | None = None,
    ) -> None:
        self._listen = tuple(listen)
        self._registry = registry
        self._admin_address = admin
        self._credentials = tls.server_credentials() if tls is not None else None
        self._public = frozenset(public)
        self._limits = message_limit_bytes, answer_limit_bytes
        self.running = RunningCalls(call_limit)
        faults = FaultsInterceptor(new_reference, self.running.stopped)
        first = (DeadlineInterceptor(assumed_deadline_s), IdentityInterceptor())
        last = (TelemetryInterceptor(metrics, tracer), *extra_interceptors)
        held = (CallersInterceptor(callers, tls),) if callers is not None else ()
        self._chain = HandlerChain(faults, (*first, *held, *last), self.running)
        brief = FaultsInterceptor(new_reference, self.running.stopped, brief=True)
        self._public_chain = HandlerChain(brief, (*first, *last), self.running, admit)
        self._services: dict[str, dict[str, Any]] = {}
        self._public_services: dict[str, dict[str, Any]] = {}
        self._exchanges: set[Exchange] = set()
        self._health = health.aio.HealthServicer()
        self._servers: list[aio.Server] = []
        self._started = self._draining = self._closed = False
        self.bound: dict[Address, Address] = {}
        self.bound_admin: Address | None = None

    def add(self, add_to_server: AddToServer) -> tuple[str, ...]:
        """Host a servicer: `server.add(lambda s: add_HealthServiceServicer_to_server(servicer, s))`.

        Returns the names of the services added. Before `start` only. TypeError for a servicer method that is not async.
        """
        if self._started:
            raise RuntimeError("servicers are added before the server starts")
        added = collect(add_to_server)
        for service, handlers in added.items():
            if service in self._services:
                raise ValueError(f"service {service} is hosted twice")
            for chain, wrapped in ((self._chain, self._services), (self._public_chain, self._public_services)):
                wrapped[service] = {name: chain.wrap(service, name, handler) for name, handler in handlers.items()}
        return tuple(added)

    @property
    def services(self) -> tuple[str, ...]:
        """The full names of the hosted services."""
        return tuple(sorted(self._services))

    async def start(self, serving: bool = True) -> None:
        """Open every door. With `serving` False health says NOT_SERVING until `set_serving`."""
        self._started = True
        await self._health.set("", _SERVING if serving else _NOT_SERVING)
        for service in self._services:
            await self._health.set(service, _SERVING if serving else _NOT_SERVING)
        if LOOPBACK in self._listen:
            for service, handlers in (self._public_services if LOOPBACK in self._public else self._services).items():
                self._registry.add(service, handlers, self._exchanges)
            self.bound[LOOPBACK] = LOOPBACK
        doors = [address for address in self._listen if address.transport is not Transport.LOOPBACK]
        for strangers, services in ((False, self._services), (True, self._public_services)):
            found = [address for address in doors if (address in self._public) is strangers]
            if found:
                self.bound.update(await self._open(found, self._all_handlers(services)))
        if self._admin_address is not None:
            opened = await self._open([self._admin_address], self._admin_handlers())
            self.bound_admin = opened[self._admin_address]

    async def set_serving(self, serving: bool = True, services: Iterable[str] | None = None) -> None:
        """Say by health whether the services (all, and the process as a whole) are ready. No effect while draining."""
        status = _SERVING if serving else _NOT_SERVING
        for service in ("", *self._services) if services is None else services:
            await self._health.set(service, status)

    async def drain(self, grace_s: float = 10.0, lag_s: float = 0.0, stream_grace_s: float = 1.0) -> bool:
        """Stop serving on sockets and wait for the handlers that sockets have brought. True if all ended by themselves.

        `lag_s` is how long load balancers may take to notice NOT_SERVING. Streams have `stream_grace_s`, other handlers
        `grace_s`; then they are cancelled and their callers told UNAVAILABLE. In-process calls go on, new ones too,
        because what is stopped last may need what is stopped first; `close` ends them.
        """
        if not self._draining:
            self._draining = True
            await self._health.enter_graceful_shutdown()
            if lag_s:
                await asyncio.sleep(lag_s)
        # From here on gRPC refuses new calls. Its own waiting is cut short below, once our register is empty: it would
        # also wait for watchers of health, which never end.
        stopping = [asyncio.create_task(server.stop(grace_s + stream_grace_s + 1.0)) for server in self._servers]
        await asyncio.sleep(0)
        clean = await self._wait_for_handlers(grace_s, stream_grace_s, sockets_only=True)
        # A handler leaves our register before gRPC has sent its answer, hence the time to flush.
        await asyncio.gather(*(server.stop(FLUSH_S) for server in self._servers))
        await asyncio.gather(*stopping)
        self._servers.clear()
        return clean

    async def close(self, grace_s: float = 10.0, finish_s: float = 5.0, stream_grace_s: float = 1.0) -> bool:
        """Drain, end in-process serving in the same way, then wait `finish_s` for the last `finally` blocks.

        True if every handler has ended. A handler that refuses to end is named in the log.
        """
        if self._closed:
            return not len(self.running)
        await self.drain(grace_s, stream_grace_s=stream_grace_s)
        self._closed = True
        if LOOPBACK in self.bound:
            for service in self._services:
                self._registry.remove(service)
        await self._wait_for_handlers(grace_s, stream_grace_s, sockets_only=False)
        ended = await self.running.wait_idle(finish_s)
        for exchange in tuple(self._exchanges):
            exchange.give_up(grpc.StatusCode.UNAVAILABLE, "the server has stopped")
        if not ended:
            _log.error("handlers still run after close", extra={"methods": self.running.methods()})
        self.bound.clear()
        return ended

    async def _wait_for_handlers(self, grace_s: float, stream_grace_s: float, sockets_only: bool) -> bool:
        running = self.running
        if await running.wait_idle(min(grace_s, stream_grace_s), sockets_only):
            return True
        clean = not running.stop(streams_only=True, sockets_only=sockets_only)
        if await running.wait_idle(max(0.0, grace_s - stream_grace_s), sockets_only):
            return clean
        _log.warning("handlers are cancelled after the grace period", extra={"methods": running.methods()})
        running.stop(sockets_only=sockets_only)
        await running.wait_idle(1.0, sockets_only)
        return False

    async def _open(self, addresses: Sequence[Address], handlers: Mapping[str, Any]) -> dict[Address, Address]:
        """Serve these handlers on these addresses; the addresses as bound."""
        server = aio.server(options=server_options(*self._limits))
        server.add_generic_rpc_handlers((_Handlers(handlers),))
        bound = {address: self._bind(server, address) for address in addresses}
        await server.start()
        for address in addresses:
            if address.transport is Transport.UNIX:
                os.chmod(address.target.removeprefix("unix:"), 0o600)
        self._servers.append(server)
        return bound

    def _bind(self, server: aio.Server, address: Address) -> Address:
        try:
            if self._credentials is not None and address.transport is Transport.TCP and address not in self._public:
                port = server.add_secure_port(address.listen, self._credentials)
            else:
                port = server.add_insecure_port(address.listen)
        except RuntimeError as error:
            said = str(error).partition(";")[0]  # the rest is about debugging grpcio
            raise OSError(f"cannot listen on {address}: {said}") from None
        if address.transport is Transport.UNIX:
            return address
        host = f"[{address.host}]" if ":" in address.host else address.host
        return Address(Transport.TCP, f"dns:///{host}:{port}", address.host, port)

    def _all_handlers(self, services: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        handlers = {
            f"/{service}/{name}": handler for service, methods in services.items() for name, handler in methods.items()
        }
        return handlers | self._health_handlers() | reflection_handlers((*self._services, HEALTH))

    def _health_handlers(self) -> dict[str, Any]:
        return _plain(lambda server: health_pb2_grpc.add_HealthServicer_to_server(self._health, server))

    def _admin_handlers(self) -> dict[str, Any]:
        from grpc_channelz.v1 import channelz_pb2_grpc

        probes = _plain(lambda s: channelz_pb2_grpc.add_ChannelzServicer_to_server(channelz.aio.ChannelzServicer(), s))
        return probes | self._health_handlers() | reflection_handlers((HEALTH, "grpc.channelz.v1.Channelz"))


def _plain(add_to_server: AddToServer) -> dict[str, Any]:
    """Handlers of gRPC's own services, by path: outside the chain, because probes and watchers carry no deadline."""
    return {
        f"/{service}/{name}": handler
        for service, methods in collect(add_to_server).items()
        for name, handler in methods.items()
    }


class _Handlers(grpc.GenericRpcHandler):
    """All methods of a server in one table.

    On purpose not gRPC's registered methods: its server waits on one future per registered method and goes through all
    of them at every call.
    """

    def __init__(self, handlers: Mapping[str, Any]) -> None:
        self._handlers = dict(handlers)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of the method, None if it is not served."""
        return self._handlers.get(handler_call_details.method)
