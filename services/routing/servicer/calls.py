"""`RoutingService`: synchronous calls."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from pointsman.routing.v1 import routing_service_pb2 as pb
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.invoke import invoke
from services.routing.app.calls.invoke_stream import invoke_stream
from services.routing.app.calls.read_call import read_call
from services.routing.wire import calls as wire
from services.routing.wire.task import selection_to_proto


class CallServicer:
    """The part of `pointsman.routing.v1.RoutingService` that serves while its caller waits."""

    def __init__(self, calls: CallDesk) -> None:
        self._calls = calls

    async def Invoke(self, request: pb.InvokeRequest, context: Any) -> pb.InvokeResponse:
        """Serves one request of a synchronous kind while the caller waits."""
        output, call = await invoke(self._calls, wire.asked_from_proto(request))
        return pb.InvokeResponse(output=output, call=wire.call_to_proto(call))

    async def InvokeStream(
        self, request: pb.InvokeStreamRequest, context: Any
    ) -> AsyncIterator[pb.InvokeStreamResponse]:
        """The same with the output piece by piece."""
        asked = wire.asked_from_proto(request.request, streamed=True)
        async with aclosing(invoke_stream(self._calls, asked)) as pieces:
            async for piece in pieces:
                for message in wire.pieces_to_proto(piece, request.together):
                    yield message

    async def GetCall(self, request: pb.GetCallRequest, context: Any) -> pb.GetCallResponse:
        """One synchronous call with its tries."""
        call, rounds = await read_call(self._calls, request.call_id, request.tenant)
        message = wire.call_to_proto(call)
        message.selections.extend(selection_to_proto(item) for item in rounds)
        return pb.GetCallResponse(call=message)
