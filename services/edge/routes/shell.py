"""The outermost layer: whatever happens inside, a caller gets a success or a problem (EDG-1, EDG-3).

It gives every request its id (our own: one that comes in proves nothing), carries it to logs and peers, counts, times
and traces it, and turns what is raised into problems. An answer that has begun and cannot go on is cut off, never
patched.
"""

import logging
from collections.abc import MutableMapping
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.world import World
from libs.rpc.identity import Identity, acting_for
from libs.telemetry import names, spans
from libs.telemetry.correlation import bound, carry_traceparent
from libs.telemetry.metrics import Metrics
from services.edge import problems
from services.edge.routes import tracing
from services.edge.routes.answers import CLIENT_LEFT
from services.edge.routes.gate import CALL_ID, REQUEST_ID, ROUTE, STANDING

UNMATCHED = "unmatched"
QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
COMMON_HEADERS = ((b"x-content-type-options", b"nosniff"),)

log = logging.getLogger(__name__)


class Shell:
    """Around the router."""

    def __init__(self, inner: Any, world: World, metrics: Metrics) -> None:
        self._inner = inner
        self._world = world
        self._metrics = metrics

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """One request. Only cancellation passes."""
        if scope["type"] != "http":
            return
        request_id = self._world.ids.ulid()
        scope[REQUEST_ID] = request_id
        outlet = _Outlet(scope, send, request_id)
        started = self._world.clock.monotonic()
        with acting_for(Identity(request_id=request_id)), bound(request_id=request_id):
            carry_traceparent(_traceparent(scope))
            tracer = spans.PROCESS.tracer
            span = tracing.begun(tracer, scope) if tracer is not None and scope["path"] not in QUIET else None
            try:
                await self._inner(scope, receive, outlet)
            except Exception as error:
                await self._end(scope, outlet, error)
            finally:
                self._count(scope, outlet, self._world.clock.monotonic() - started)
                if span is not None:
                    tracing.ended(span, scope, outlet.status or CLIENT_LEFT, outlet.code)

    async def _end(self, scope: MutableMapping[str, Any], outlet: "_Outlet", error: Exception) -> None:
        fault = error if isinstance(error, Fault) else self._bug(error, outlet.request_id)
        outlet.code = fault.code
        self._metrics.counter(names.HTTP_PROBLEMS, code=fault.code).inc()
        if outlet.status:
            log.warning("http_answer_cut", extra={"code": fault.code})
            return
        status, headers, body = problems.answer(fault, outlet.request_id, scope["path"], scope.get(CALL_ID, ""))
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        raw.append((b"content-length", str(len(body)).encode()))
        await outlet({"type": "http.response.start", "status": status, "headers": raw})
        await outlet({"type": "http.response.body", "body": body})

    def _bug(self, error: Exception, request_id: str) -> Fault:
        log.error("unhandled exception behind the edge, reference %s", request_id, exc_info=error)
        return Fault.of("internal", f"reference {request_id}", metadata={"reference": request_id})

    def _count(self, scope: MutableMapping[str, Any], outlet: "_Outlet", seconds: float) -> None:
        route = scope.get(ROUTE, UNMATCHED)
        method = scope["method"] if scope["method"] in tracing.METHODS else "other"
        status = outlet.status or CLIENT_LEFT
        self._metrics.histogram(names.HTTP_SECONDS, route=route, method=method, status=str(status)).observe(seconds)
        if route not in QUIET:
            facts = {"route": route, "method": method, "status": status, "seconds": round(seconds, 4)}
            log.info("http_request", extra=facts)


class _Outlet:
    """`send` that knows whether an answer has begun, signs it, and keeps the body of a HEAD back."""

    def __init__(self, scope: MutableMapping[str, Any], send: Any, request_id: str) -> None:
        self._scope = scope
        self._send = send
        self._head = scope["method"] == "HEAD"
        self.request_id = request_id
        self.status = 0
        self.code = ""

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = [*COMMON_HEADERS, (b"x-request-id", self.request_id.encode())]
            if CALL_ID in self._scope:
                own.append((b"pointsman-call", self._scope[CALL_ID].encode()))
            if STANDING in self._scope:
                own.extend(self._scope[STANDING].headers())
            message = {**message, "headers": [*message.get("headers", ()), *own]}
        elif self._head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)


def _traceparent(scope: MutableMapping[str, Any]) -> str:
    """The W3C trace that the caller is in, "" if there is none that can be read."""
    for name, value in scope["headers"]:
        if name == b"traceparent":
            text = value.decode("latin-1")
            return text if len(text) == 55 and text.count("-") == 3 and text.isascii() else ""
    return ""


async def unknown_path(scope: Any, receive: Any, send: Any) -> None:
    """What the router does with a path that nobody serves."""
    raise Fault.of("not_found", "this path does not exist; the paths that do are listed at /docs")
