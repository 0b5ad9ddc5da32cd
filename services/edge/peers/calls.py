"""Routing's synchronous calls over its stub."""

from collections.abc import AsyncGenerator
from typing import Any

from libs.faults.fault import Fault
from libs.rpc.faulting import faulting, faults_from_rpc
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from services.edge.domain import call_shapes, replay_shapes
from services.edge.domain.calls import LONGEST_CALL_S, CallOrder, Receipt, Served
from services.edge.wire import calls as wire
from services.edge.wire import replays as wire_replays

READ_TIMEOUT_S = 10.0
MARGIN_S = 5.0
"""Routing ends a call in time and says why; this much later we give up on routing."""


class CallsPeer:
    """Implements `ports.Calls`."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = RoutingServiceStub(channel)

    @faulting
    async def invoke(self, tenant: str, call_id: str, order: CallOrder) -> Served:
        """See the port."""
        reply = await self._stub.Invoke(wire.request(tenant, call_id, order), timeout=_patience(order))
        return Served(reply.output, wire.receipt(reply.call))

    async def stream(self, tenant: str, call_id: str, order: CallOrder) -> AsyncGenerator[list[bytes] | Receipt, None]:
        """See the port."""
        request = pb.InvokeStreamRequest(request=wire.request(tenant, call_id, order), together=True)
        call = self._stub.InvokeStream(request, timeout=_patience(order))
        ended: Receipt | None = None
        try:
            with faults_from_rpc():
                async for reply in call:  # to its very end: what comes after the receipt is routing's own business
                    if reply.HasField("call"):
                        ended = wire.receipt(reply.call)
                    else:
                        yield list(reply.chunks) or [reply.chunk]
            if ended is None:
                raise Fault.of("stream_interrupted", "the stream ended without its last event")
            yield ended
        finally:
            call.cancel()

    @faulting
    async def get(self, tenant: str, call_id: str) -> call_shapes.Call:
        """See the port."""
        request = pb.GetCallRequest(call_id=call_id, tenant=tenant)
        reply = await self._stub.GetCall(request, timeout=READ_TIMEOUT_S)
        return wire.call(reply.call)

    @faulting
    async def replay(self, tenant: str, call_id: str) -> replay_shapes.CallReplay:
        """See the port."""
        request = pb.ReplaySelectionRequest(call_id=call_id, tenant=tenant)
        return wire_replays.call_replay(call_id, await self._stub.ReplaySelection(request, timeout=READ_TIMEOUT_S))


def _patience(order: CallOrder) -> float:
    """Without a word of the caller the policy bounds the call, and it may say as much as this."""
    return (order.options.timeout_s or LONGEST_CALL_S) + MARGIN_S
