"""Inbound over gRPC: `pointsman.edge.v1.KeyService` and `AdmissionService`."""

from typing import Any

from libs.faults.fault import Fault
from libs.kernel.world import World
from libs.rpc.paging import page_size
from libs.rpc.values import seconds_of, struct_from, struct_to_dict, time_from_proto
from pointsman.edge.v1 import admission_service_pb2
from pointsman.edge.v1 import key_service_pb2 as pb
from pointsman.edge.v1.admission_service_pb2_grpc import AdmissionServiceServicer
from pointsman.edge.v1.key_service_pb2_grpc import KeyServiceServicer
from pointsman.runs.v1 import runs_service_pb2
from services.edge.app.authenticate import Authenticator, Caller
from services.edge.app.create_key import create_key
from services.edge.app.judge_request import JudgeRequest
from services.edge.app.list_keys import list_keys
from services.edge.app.request_quotas import RequestQuotas
from services.edge.app.reveal import Reveal
from services.edge.app.revoke_key import revoke_key
from services.edge.app.rotate_key import rotate_key
from services.edge.domain.keys import Scope
from services.edge.domain.orders import DATA, INPUT
from services.edge.ports import Keys, Random
from services.edge.wire import judging
from services.edge.wire.keys import key_to_proto


class KeyServicer(KeyServiceServicer):
    """API keys and the tenants behind them."""

    def __init__(
        self, store: Keys, authenticator: Authenticator, quotas: RequestQuotas, world: World, random: Random
    ) -> None:
        self._store = store
        self._authenticator = authenticator
        self._quotas = quotas
        self._world = world
        self._random = random

    async def CreateKey(self, request: pb.CreateKeyRequest, context: Any) -> pb.CreateKeyResponse:
        """Makes a key; its secret is shown once."""
        expires_at = time_from_proto(request.expire_time, "/expire_time")
        scopes = list(request.scopes)
        key, text = await create_key(self._store, self._world, self._random, request.tenant, scopes, expires_at)
        return pb.CreateKeyResponse(key=key_to_proto(key), secret=text)

    async def ListKeys(self, request: pb.ListKeysRequest, context: Any) -> pb.ListKeysResponse:
        """The keys on record, newest first."""
        size = page_size(request.page_size)
        keys, following = await list_keys(self._store, request.tenant, request.page_token, size)
        return pb.ListKeysResponse(keys=[key_to_proto(key) for key in keys], next_page_token=following)

    async def RevokeKey(self, request: pb.RevokeKeyRequest, context: Any) -> pb.RevokeKeyResponse:
        """Ends a key, effective within five seconds everywhere."""
        key = await revoke_key(self._store, self._authenticator, self._world, request.key_id)
        return pb.RevokeKeyResponse(key=key_to_proto(key))

    async def RotateKey(self, request: pb.RotateKeyRequest, context: Any) -> pb.RotateKeyResponse:
        """Gives a key a new secret; the old one may live on for a while."""
        grace_s = seconds_of(request.grace)
        key, text = await rotate_key(
            self._store, self._authenticator, self._world, self._random, request.key_id, grace_s
        )
        return pb.RotateKeyResponse(key=key_to_proto(key), secret=text)

    async def Authenticate(self, request: pb.AuthenticateRequest, context: Any) -> pb.AuthenticateResponse:
        """Tells whose a secret is, or UNAUTHENTICATED. The public port asks once for each call: a user's counts."""
        key, _ = await self._authenticator.key(request.secret)
        if not key.scopes & {Scope.OPERATE, Scope.ADMIN}:
            _, refusal = await self._quotas.admit(key.tenant)
            if refusal is not None:
                raise refusal
        return pb.AuthenticateResponse(key=key_to_proto(key))


class AdmissionServicer(AdmissionServiceServicer):
    """What callers of the public gRPC port bring."""

    def __init__(self, judge: JudgeRequest, reveal: Reveal) -> None:
        self._judge = judge
        self._reveal = reveal

    async def Judge(
        self, request: admission_service_pb2.JudgeRequest, context: Any
    ) -> admission_service_pb2.JudgeResponse:
        """Takes in the materials of a request, or tells which fields are wrong."""
        caller = judging.caller(request.key)
        match request.WhichOneof("request"):
            case "create_run":
                await self._order(caller, request.create_run)
                return admission_service_pb2.JudgeResponse(create_run=request.create_run)
            case "steer_run":
                steer = request.steer_run
                data = await self._judge.brought(caller, struct_to_dict(steer.data), DATA)
                steer.data.CopyFrom(struct_from(data))
                return admission_service_pb2.JudgeResponse(steer_run=steer)
            case "redrive_run":
                redrive = request.redrive_run
                if redrive.HasField("input"):
                    given = await self._judge.brought(caller, struct_to_dict(redrive.input), INPUT)
                    redrive.input.CopyFrom(struct_from(given))
                return admission_service_pb2.JudgeResponse(redrive_run=redrive)
            case "decide":
                decide = request.decide
                if decide.HasField("input"):
                    given = await self._judge.brought(caller, struct_to_dict(decide.input), INPUT)
                    decide.input.CopyFrom(struct_from(given))
                return admission_service_pb2.JudgeResponse(decide=decide)
            case "submit_task":
                task = request.submit_task
                order = await self._judge.order(caller, judging.task_body(task))
                task.input.CopyFrom(struct_from(order.input))
                return admission_service_pb2.JudgeResponse(submit_task=task)
            case "invoke":
                call = request.invoke
                call.input = await self._judge.call(caller, call.model, call.kind, call.input)
                return admission_service_pb2.JudgeResponse(invoke=call)
            case _:
                raise Fault.invalid(("/request", "is required"))

    async def Reveal(
        self, request: admission_service_pb2.RevealRequest, context: Any
    ) -> admission_service_pb2.RevealResponse:
        """Lets a tenant read artifacts that an answer is about to show it."""
        await self._reveal.grant(request.tenant, request.sha256)
        return admission_service_pb2.RevealResponse()

    async def _order(self, caller: Caller, request: runs_service_pb2.CreateRunRequest) -> None:
        """Its fingerprint is told before its materials change, so that a repeat is known by what its caller said."""
        if request.idempotency_key:
            request.fingerprint = judging.fingerprint_of(request)
        if not await self._judge.known(request.tenant, request.idempotency_key, request.fingerprint):
            judging.refuse_inner_options(request)
            judging.put_order(request, await self._judge.order(caller, judging.order_body(request)))
