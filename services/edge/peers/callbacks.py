"""Callbacks of runs over its stub."""

from typing import Any

from libs.rpc.faulting import faulting
from pointsman.runs.v1 import callback_service_pb2 as pb
from pointsman.runs.v1.callback_service_pb2_grpc import CallbackServiceStub
from services.edge.domain import callback_shapes
from services.edge.wire import callbacks as wire

TIMEOUT_S = 10.0


class CallbacksPeer:
    """Implements `ports.Callbacks`."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = CallbackServiceStub(channel)

    @faulting
    async def of_run(self, tenant: str, run_id: str) -> list[callback_shapes.Callback]:
        """See the port."""
        request = pb.ListCallbacksRequest(tenant=tenant, run_id=run_id)
        reply = await self._stub.ListCallbacks(request, timeout=TIMEOUT_S)
        return [wire.callback(item) for item in reply.callbacks]

    @faulting
    async def rotate_secret(self, tenant: str) -> str:
        """See the port."""
        reply = await self._stub.RotateSecret(pb.RotateSecretRequest(tenant=tenant), timeout=TIMEOUT_S)
        return str(reply.secret)
