"""`RoutingService`: synchronous calls."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from libs.rpc.paging import page_size, page_within
from pointsman.routing.v1 import call_list_pb2, call_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.invoke import invoke
from services.routing.app.calls.invoke_stream import invoke_stream
from services.routing.app.calls.read_call import read_call
from services.routing.ports.calls import CallQuery
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

    async def ListCalls(self, request: call_list_pb2.ListCallsRequest, context: Any) -> call_list_pb2.ListCallsResponse:
        """A page of calls that have ended, the newest end first."""
        size, asked = page_size(request.page_size), wire.query_from_proto(request)
        page, following = await page_within(partial(self._listed, asked), request.page_token, size)
        return call_list_pb2.ListCallsResponse(calls=page, next_page_token=following)

    async def _listed(self, asked: CallQuery, token: str, size: int) -> tuple[Sequence[call_pb2.Call], str]:
        found, following = await self._calls.store.find(asked, token, size)
        return [wire.call_to_proto(call) for call in found], following
