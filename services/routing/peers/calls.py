"""`CallProvider` over `ProviderService`. Its law is that of `peers.provider`: what proves nothing is
`submission_unknown`, and nothing is sent twice."""

from collections.abc import AsyncGenerator
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.deadlines import deadline_at
from libs.rpc.faulting import faults_from_rpc
from pointsman.provider_adapter.v1.provider_service_pb2_grpc import ProviderServiceStub
from services.routing.domain.catalog import Channel, Supply
from services.routing.peers.provider import PROVES_NOTHING
from services.routing.ports.calls import Answered, Outgoing, Report
from services.routing.wire import calls as wire

GRACE_S = 2.0
"""How much longer than a try the call to its provider's context may take. Time is kept by the try's own watchdog, which
knows whose time it was: that context stops short of its deadline to tell an outcome, and would tell the end of a
caller's short time as the provider's silence, or send nothing at all and prove nothing."""


class RemoteCalls:
    """See the port."""

    def __init__(self, channel: Any) -> None:
        self._stub = ProviderServiceStub(channel)

    async def invoke(self, channel: Channel, supply: Supply, outgoing: Outgoing) -> Answered:
        """See the port."""
        asked = wire.invoke_to_proto(channel, supply, outgoing)
        try:
            with deadline_at(None):
                asking = self._stub.Invoke(asked, timeout=outgoing.longest_s + GRACE_S)
            async with faults_from_rpc():
                answer = await asking
        except Fault as fault:
            raise proved(fault, supply) from fault
        return wire.answered_from_proto(answer)

    async def stream(
        self, channel: Channel, supply: Supply, outgoing: Outgoing
    ) -> AsyncGenerator[list[bytes] | Report, None]:
        """See the port."""
        asked = wire.stream_to_proto(channel, supply, outgoing)
        with deadline_at(None):
            call = self._stub.InvokeStream(asked, timeout=outgoing.longest_s + GRACE_S)
        try:
            async with faults_from_rpc():
                async for piece in call:
                    yield wire.streamed_from_proto(piece)
        except Fault as fault:
            raise proved(fault, supply) from fault
        finally:
            call.cancel()  # whoever leaves early ends the provider's stream too


def proved(fault: Fault, supply: Supply) -> Fault:
    """The fault, if provider_adapter itself has named it; else that nothing was proved."""
    if fault.code in PROVES_NOTHING or "transport_status" in fault.metadata:
        return Fault.of("submission_unknown", f"no answer to the call at {supply.id} ({fault.code})")
    return fault
