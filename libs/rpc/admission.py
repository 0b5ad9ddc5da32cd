"""Who may come in by the public gRPC port: callers with an API key, as over HTTP (AUTH-1).

    RpcServer(..., public=(address,), admit=KeyAdmission(channels.to("edge")))

Laws of this file:
- who comes in by a public port is a stranger, whoever it says that it is; our own have doors of their own;
- a user's key reaches only what has a tenant in its request, and only its own; everything else is for operators;
- what a request brings (files, URLs, a callback) is judged by the edge before the method begins, as over HTTP (AUTH-4);
- a method that is not in the table is for operators, so a new one is closed until somebody decides otherwise.
"""

from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from libs.rpc.chain import Check
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.identity import Identity, carry_identity, current_identity
from libs.rpc.interceptors.incoming import IncomingCall
from pointsman.edge.v1 import admission_service_pb2, key_service_pb2
from pointsman.edge.v1.admission_service_pb2_grpc import AdmissionServiceStub
from pointsman.edge.v1.key_service_pb2_grpc import KeyServiceStub

TIMEOUT_S = 5.0
JUDGE_TIMEOUT_S = 300.0
"""Files may have to be fetched; the deadline of the call ends it earlier."""
OPERATORS = frozenset({"operate", "admin"})
_USERS = frozenset({"runs"}) | OPERATORS
_CALLERS = frozenset({"invoke"}) | OPERATORS
_ADMINS = frozenset({"admin"})

SCOPES: Mapping[str, frozenset[str]] = {
    "/pointsman.runs.v1.RunsService/CreateRun": _USERS,
    "/pointsman.runs.v1.RunsService/FindRunByKey": _USERS,
    "/pointsman.runs.v1.RunsService/GetRun": _USERS,
    "/pointsman.runs.v1.RunsService/ListRuns": _USERS,
    "/pointsman.runs.v1.RunsService/JoinRun": _USERS,
    "/pointsman.runs.v1.RunsService/CancelRun": _USERS,
    "/pointsman.runs.v1.RunsService/StreamRunEvents": _USERS,
    "/pointsman.runs.v1.RunsService/PauseRun": _USERS,
    "/pointsman.runs.v1.RunsService/ResumeRun": _USERS,
    "/pointsman.runs.v1.RunsService/SteerRun": _USERS,
    "/pointsman.runs.v1.RunsService/RedriveRun": _USERS,
    "/pointsman.runs.v1.CallbackService/ListCallbacks": _USERS,
    "/pointsman.runs.v1.CallbackService/RotateSecret": _ADMINS,
    "/pointsman.routing.v1.RoutingService/GetTask": _USERS,
    "/pointsman.routing.v1.RoutingService/ListTasks": _USERS,
    "/pointsman.routing.v1.RoutingService/ListSelections": _USERS,
    "/pointsman.routing.v1.RoutingService/ReplaySelection": _USERS,
    "/pointsman.routing.v1.RoutingService/Invoke": _CALLERS,
    "/pointsman.routing.v1.RoutingService/InvokeStream": _CALLERS,
    "/pointsman.routing.v1.RoutingService/GetCall": _CALLERS,
    "/pointsman.routing.v1.CatalogService/ListModels": _USERS | {"invoke"},
    "/pointsman.edge.v1.KeyService/CreateKey": _ADMINS,
    "/pointsman.edge.v1.KeyService/ListKeys": _ADMINS,
    "/pointsman.edge.v1.KeyService/RevokeKey": _ADMINS,
    "/pointsman.edge.v1.KeyService/RotateKey": _ADMINS,
    "/pointsman.edge.v1.KeyService/Authenticate": _ADMINS,
    "/pointsman.edge.v1.AdmissionService/Judge": _ADMINS,
}
"""Path of a method -> the scopes of which one suffices; what is not here takes `operate` or `admin`."""

BRINGING: Mapping[str, str] = {
    "/pointsman.runs.v1.RunsService/CreateRun": "create_run",
    "/pointsman.runs.v1.RunsService/SteerRun": "steer_run",
    "/pointsman.runs.v1.RunsService/RedriveRun": "redrive_run",
    "/pointsman.routing.v1.RoutingService/Invoke": "invoke",
    "/pointsman.routing.v1.RoutingService/InvokeStream": "invoke",
}
"""Path of a method that brings materials -> its name in a JudgeRequest. What else may bring some is for operators,
who may read every file."""


class KeyAdmission:
    """The `admit` of a server with public ports. `channel` leads to the edge, which knows the keys."""

    def __init__(self, channel: Any) -> None:
        self._keys: Any = KeyServiceStub(channel)
        self._judge: Any = AdmissionServiceStub(channel)

    async def __call__(self, call: IncomingCall) -> Check | None:
        """Let the call in, or raise Fault unauthenticated or forbidden; answers the check of its request."""
        identity = current_identity()
        key = await self._recognise(identity)
        sufficient = SCOPES.get(call.method.path, OPERATORS)
        if not sufficient.intersection(key.scopes):
            named = " or ".join(f"'{scope}'" for scope in sorted(sufficient))
            raise Fault.of("forbidden", f"the key lacks the scope {named}")
        carry_identity(Identity("", identity.request_id, key.tenant))
        operator, brings = bool(OPERATORS.intersection(key.scopes)), BRINGING.get(call.method.path, "")
        if operator and not brings:
            return None
        if call.method.request_streaming and not operator:
            raise Fault.of("forbidden", "streams of requests are for operators")

        async def check(request: Any) -> None:
            if not operator:
                _only(key.tenant, request)
            if brings:
                await self._take(key, brings, request)

        return check

    async def _take(self, key: Any, brings: str, request: Any) -> None:
        """Let the edge judge the request, and go on with what it made of it."""
        whole = request if hasattr(request, "tenant") else request.request
        asked = admission_service_pb2.JudgeRequest(key=key, **{brings: whole})
        async with faults_from_rpc():
            judged = await self._judge.Judge(asked, timeout=JUDGE_TIMEOUT_S)
        whole.CopyFrom(getattr(judged, brings))

    async def _recognise(self, identity: Identity) -> Any:
        header = identity.authorization.reveal() if identity.authorization is not None else ""
        scheme, _, secret = header.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            missing = "no key was given; send it in the metadata `authorization`, as a Bearer token"
            raise Fault.of("unauthenticated", missing)
        async with faults_from_rpc():
            request = key_service_pb2.AuthenticateRequest(secret=secret.strip())
            return (await self._keys.Authenticate(request, timeout=TIMEOUT_S)).key


def _only(tenant: str, request: Any) -> None:
    named = request.tenant if hasattr(request, "tenant") else request.request.tenant
    if named != tenant:
        raise Fault.of("forbidden", f"the key belongs to tenant {tenant!r}; the request must name it as its tenant")
