"""What stands before every operation: its method, the caller's key and scope, and a path that holds no nonsense."""

from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from libs.faults.fault import Fault
from libs.rpc.identity import Identity, carry_identity, current_identity
from libs.telemetry.correlation import bind
from services.edge.app.authenticate import Authenticator
from services.edge.app.open_requests import OpenRequests
from services.edge.app.request_quotas import RequestQuotas
from services.edge.domain import queries
from services.edge.domain.keys import check_scope
from services.edge.routes.operations import Asked, Operation, plain

ROUTE = "pointsman:route"
REQUEST_ID = "pointsman:request_id"
CALL_ID = "pointsman:call_id"
"""Set in the scope of a request that has become a call: its answer, good or bad, tells the id."""
STANDING = "pointsman:standing"
"""Set in the scope of a request that counts towards a quota: its answer, good or bad, tells how the tenant stands."""
ONCE = frozenset(
    b"authorization host content-type content-encoding idempotency-key last-event-id range if-range traceparent"
    b" pointsman-timeout pointsman-session pointsman-parent pointsman-degradation pointsman-cache".split()
)
"""Headers of which two would say two things, and somebody in between may believe the other one."""
PLACE = "pointsman:place"
"""Set in the scope of a request that holds a place of its tenant's, until its answer has ended in whatever way."""


class Gate:
    """Every operation of one path, as an ASGI application."""

    def __init__(
        self,
        path: str,
        operations: Iterable[Operation],
        authenticator: Authenticator,
        quotas: RequestQuotas,
        places: OpenRequests,
    ) -> None:
        self._path = path
        self._authenticator = authenticator
        self._quotas = quotas
        self._places = places
        self._operations = {operation.method: operation for operation in operations}
        allowed = {*self._operations, "OPTIONS"}
        if "GET" in self._operations and self._operations["GET"].head:
            allowed.add("HEAD")
        self._allow = ", ".join(sorted(allowed))
        self._methods = frozenset(allowed)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        scope[ROUTE] = self._path
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
            await response(scope, receive, send)
        finally:
            place = scope.pop(PLACE, None)
            if place is not None:
                place.release()

    async def _answer(self, request: Request) -> Response:
        _check_heads(request.scope)
        if request.method not in self._methods:
            told = f"{request.method[:20]} is not allowed on {self._path}"
            raise Fault.of("method_not_allowed", told, metadata={"allow": self._allow})
        if request.method == "OPTIONS":
            return Response(None, 204, {"allow": self._allow})
        operation = self._operations["GET" if request.method == "HEAD" else request.method]
        asked = await self._admit(request, operation)
        return await operation.handle(asked)

    async def _admit(self, request: Request, operation: Operation) -> Asked:
        request_id = str(request.scope.get(REQUEST_ID, ""))
        if not operation.scopes:
            _check_words(request, operation)
            return Asked(request, request_id, None, operation)
        caller = await self._authenticator.bearer(request.headers.get("authorization"))
        bind(tenant=caller.tenant, key_id=caller.key_id)  # so that the log tells whose requests are refused, too
        check_scope(caller.scopes, operation.scopes)
        held = operation.held
        if held is not None:
            request.scope[PLACE] = self._places.take(caller.tenant, held)
        if operation.counts:
            await self._count(request, caller.tenant)
        _check_words(request, operation)
        acting = current_identity()
        carry_identity(Identity(acting.caller, acting.request_id, caller.tenant))
        return Asked(request, request_id, caller, operation)

    async def _count(self, request: Request, tenant: str) -> None:
        standing, refusal = await self._quotas.admit(tenant)
        if standing is not None:
            request.scope[STANDING] = standing
        if refusal is not None:
            raise refusal


def _check_heads(scope: Any) -> None:
    """Fault malformed_request for a header that has one meaning and is given twice, and for HTTP/1.1 without a Host."""
    names = [name for name, _ in scope["headers"]]
    said = set(names)
    if len(said) != len(names):
        twice = sorted(name.decode("latin-1") for name in said & ONCE if names.count(name) > 1)
        if twice:
            raise Fault.of("malformed_request", f"the header {twice[0]} is given more than once; give it once")
    if scope.get("http_version") == "1.1" and b"host" not in said:
        raise Fault.of("malformed_request", "HTTP/1.1 asks for a header Host, and there is none")


def _check_words(request: Request, operation: Operation) -> None:
    """NUL characters are in no id; and a query string says what the operation knows, or nothing is done (EDG-3)."""
    errors = [(f"/path/{name}", "holds a NUL character") for name, v in request.path_params.items() if "\x00" in v]
    if request.scope.get("query_string"):
        errors += queries.faults(request.query_params.multi_items(), operation.queried)
    if errors:
        raise Fault.invalid(*errors)


class Paths:
    """Every gate by its path, as an ASGI application: paths without variables at once, others in their order."""

    def __init__(
        self,
        operations: Iterable[Operation],
        authenticator: Authenticator,
        quotas: RequestQuotas,
        places: OpenRequests,
        unknown: Any,
    ) -> None:
        paths: dict[str, list[Operation]] = {}
        for operation in operations:
            paths.setdefault(operation.path, []).append(operation)
        gates = {path: Gate(plain(path), found, authenticator, quotas, places) for path, found in paths.items()}
        self._literal = {path: gate for path, gate in gates.items() if "{" not in path}
        others = [Route(path, gate) for path, gate in gates.items() if path not in self._literal]
        self._router = Router(others, redirect_slashes=False, default=unknown)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        gate = self._literal.get(scope["path"])
        if gate is None:
            await self._router(scope, receive, send)
        else:
            await gate(scope, receive, send)
