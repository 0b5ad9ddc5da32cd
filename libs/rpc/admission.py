"""Who may come in by the public gRPC port: callers with an API key, as over HTTP (AUTH-1).

    RpcServer(..., public=(address,), admit=KeyAdmission(channels.to("edge")))

Laws of this file:
- who comes in by a public port is a stranger, whoever it says that it is; our own have doors of their own;
- a user's key reaches only what has a tenant in its request, and only its own; everything else is for operators;
- what no message may hold (an unknown enumerator, a time that is none) is refused with its field, for operators too;
- what a request brings (files, URLs, a callback) is judged by the edge before the method begins, as over HTTP (AUTH-4);
- what an answer shows a user of its own Runs, Tasks and calls is its own to read and to bring from then on (AUTH-1);
- a tenant has so many calls open at a time and no more, so that no tenant takes the port from all others (AUTH-2);
- a method that is not in the table is for operators, so a new one is closed until somebody decides otherwise.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from libs.faults.fault import Fault
from libs.rpc.chain import Admitted
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.identity import Identity, carry_identity, current_identity
from libs.rpc.interceptors.incoming import IncomingCall
from libs.rpc.wellformed import check_message
from pointsman.common.v1 import artifact_pb2
from pointsman.edge.v1 import admission_service_pb2, key_service_pb2
from pointsman.edge.v1.admission_service_pb2_grpc import AdmissionServiceStub
from pointsman.edge.v1.key_service_pb2_grpc import KeyServiceStub

TIMEOUT_S = 5.0
JUDGE_TIMEOUT_S = 300.0
"""Files may have to be fetched; the deadline of the call ends it earlier."""
MOST_OPEN = 2000
MOST_OPEN_SETTING = "POINTSMAN_TENANT_GRPC_CALLS"
RETRY_AFTER_MS = 2000
OURS = "pointsman."
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
    "/pointsman.routing.v1.RoutingService/ListCalls": _CALLERS,
    "/pointsman.routing.v1.CatalogService/ListModels": _USERS | {"invoke"},
    "/pointsman.edge.v1.KeyService/CreateKey": _ADMINS,
    "/pointsman.edge.v1.KeyService/ListKeys": _ADMINS,
    "/pointsman.edge.v1.KeyService/RevokeKey": _ADMINS,
    "/pointsman.edge.v1.KeyService/RotateKey": _ADMINS,
    "/pointsman.edge.v1.KeyService/Authenticate": _ADMINS,
    "/pointsman.edge.v1.AdmissionService/Judge": _ADMINS,
    "/pointsman.edge.v1.AdmissionService/Reveal": _ADMINS,
}
"""Path of a method -> the scopes of which one suffices; what is not here takes `operate` or `admin`."""

BRINGING: Mapping[str, str] = {
    "/pointsman.runs.v1.RunsService/CreateRun": "create_run",
    "/pointsman.runs.v1.RunsService/SteerRun": "steer_run",
    "/pointsman.runs.v1.RunsService/RedriveRun": "redrive_run",
    "/pointsman.runs.v1.ReviewService/Decide": "decide",
    "/pointsman.routing.v1.RoutingService/SubmitTask": "submit_task",
    "/pointsman.routing.v1.RoutingService/Invoke": "invoke",
    "/pointsman.routing.v1.RoutingService/InvokeStream": "invoke",
}
"""Path of a method that brings materials -> its name in a JudgeRequest. Operators may read every file, and what they
bring is judged all the same: a URL leads inside for nobody (AUTH-4). What is left are the methods of ProviderService, a
call of ours to a provider word for word."""


class KeyAdmission:
    """The `admit` of a server with public ports. `channel` leads to the edge, which knows the keys.

    `most_open`: calls that a tenant's users may have open here at a time; 0 = no limit.
    """

    def __init__(self, channel: Any, most_open: int = MOST_OPEN) -> None:
        self._keys: Any = KeyServiceStub(channel)
        self._edge: Any = AdmissionServiceStub(channel)
        self._most_open = most_open
        self._open: Counter[str] = Counter()

    async def __call__(self, call: IncomingCall) -> Admitted | None:
        """Let the call in, or raise Fault unauthenticated, forbidden or quota_exceeded. Answers what else holds."""
        identity = current_identity()
        key = await self._recognise(identity)
        sufficient = SCOPES.get(call.method.path, OPERATORS)
        if not sufficient.intersection(key.scopes):
            named = " or ".join(f"'{scope}'" for scope in sorted(sufficient))
            raise Fault.of("forbidden", f"the key lacks the scope {named}")
        carry_identity(Identity("", identity.request_id, key.tenant))
        operator, brings = bool(OPERATORS.intersection(key.scopes)), BRINGING.get(call.method.path, "")
        if call.method.request_streaming and not operator:
            raise Fault.of("forbidden", "streams of requests are for operators")
        if operator:
            return _Visit(self._edge, key, operator, brings)
        self._take(key.tenant)
        return _Visit(self._edge, key, operator, brings, self._open)

    def _take(self, tenant: str) -> None:
        if self._most_open and self._open[tenant] >= self._most_open:
            told = f"tenant {tenant!r} has {self._most_open} of {self._most_open} calls open at this server"
            remedy = f"end those that nobody reads, or ask the operator to raise {MOST_OPEN_SETTING}"
            raise Fault.of("quota_exceeded", f"{told}; {remedy}", retry_after_ms=RETRY_AFTER_MS)
        self._open[tenant] += 1

    async def _recognise(self, identity: Identity) -> Any:
        header = identity.authorization.reveal() if identity.authorization is not None else ""
        scheme, _, secret = header.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            missing = "no key was given; send it in the metadata `authorization`, as a Bearer token"
            raise Fault.of("unauthenticated", missing)
        async with faults_from_rpc():
            request = key_service_pb2.AuthenticateRequest(secret=secret.strip())
            return (await self._keys.Authenticate(request, timeout=TIMEOUT_S)).key


class _Visit:
    """A call that was let in by its key; implements `Admitted`."""

    def __init__(self, edge: Any, key: Any, operator: bool, brings: str, among: Counter[str] | None = None) -> None:
        self._among = among
        self._edge = edge
        self._key = key
        self._operator = operator
        self._brings = brings

    async def asks(self, request: Any) -> None:
        """Refuse what nobody can read, hold a user's request to its own tenant and name, and go on with what the edge
        made of what it brings."""
        check_message(request)
        whole = request if self._operator or hasattr(request, "tenant") else request.request
        if not self._operator and whole.tenant != self._key.tenant:
            told = f"the key belongs to tenant {self._key.tenant!r}; the request must name it as its tenant"
            raise Fault.of("forbidden", told)
        if not self._operator and hasattr(whole, "actor"):
            whole.actor = self._key.id  # as over HTTP: who acts is who has the key, whatever the request says
        if not self._brings:
            return
        asked = admission_service_pb2.JudgeRequest(key=self._key, **{self._brings: whole})
        async with faults_from_rpc():
            judged = await self._edge.Judge(asked, timeout=JUDGE_TIMEOUT_S)
        whole.CopyFrom(getattr(judged, self._brings))

    async def told(self, response: Any) -> None:
        """Let a user read what it is about to be shown; operators may read everything."""
        shown = () if self._operator else dict.fromkeys(_artifacts(response))
        if shown:
            asked = admission_service_pb2.RevealRequest(tenant=self._key.tenant, sha256=shown)
            async with faults_from_rpc():
                await self._edge.Reveal(asked, timeout=TIMEOUT_S)

    def left(self) -> None:
        """Give the user's place back."""
        if self._among is not None:
            self._among[self._key.tenant] -= 1
            if not self._among[self._key.tenant]:
                del self._among[self._key.tenant]


def _artifacts(message: Any) -> Iterator[str]:
    """The digests of artifacts in a message, which contexts alone write; JSON of callers proves nothing."""
    if isinstance(message, artifact_pb2.Artifact):
        if message.sha256:
            yield message.sha256
        return
    for field, value in message.ListFields():
        described = field.message_type
        if described is None or described.GetOptions().map_entry or not described.full_name.startswith(OURS):
            continue
        for each in value if field.is_repeated else (value,):
            yield from _artifacts(each)
