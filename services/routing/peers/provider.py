"""`Provider` over `ProviderService`.

Law of this file: what proves nothing about a submission is `submission_unknown`. A fault that provider_adapter itself
has named is its verdict; one that the transport made (it carries `transport_status`), or that says the callee was
stopped or has a bug, may hide a job that was taken (ERR-1a).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from libs.kernel.money import Money
from libs.rpc.faulting import faulting, faults_from_rpc
from libs.rpc.values import money_from_proto, seconds_to_proto, time_to_proto
from pointsman.provider_adapter.v1 import provider_service_pb2 as pb
from pointsman.provider_adapter.v1.provider_service_pb2_grpc import ProviderServiceStub
from services.routing.domain.catalog import Channel, Supply
from services.routing.domain.task import Attempt
from services.routing.ports import Polled, Reconciled, Submitted
from services.routing.wire import peers as wire
from services.routing.wire.endpoints import endpoint

PROVES_NOTHING = frozenset({"internal", "cancelled", "deadline_exceeded", "peer_unavailable"})


class RemoteProvider:
    """See the port. `delivery_s` is the time beyond the provider's own answer to fetch and store media."""

    def __init__(self, channel: Any, timeout_s: float, delivery_s: float, clock: Clock) -> None:
        self._stub = ProviderServiceStub(channel)
        self._clock = clock
        self._timeout_s = timeout_s
        self._delivery_s = delivery_s

    async def submit(self, channel: Channel, supply: Supply, attempt: Attempt) -> Submitted:
        """See the port."""
        asked = pb.SubmitRequest(channel=endpoint(channel), job=wire.job(supply, attempt))
        try:
            async with faults_from_rpc():
                answer = await self._stub.Submit(asked, timeout=channel.timeouts.submit_s + self._delivery_s)
        except Fault as fault:
            if fault.code in PROVES_NOTHING or "transport_status" in fault.metadata:
                text = f"no answer to the submission at {supply.id} ({fault.code})"
                raise Fault.of("submission_unknown", text) from fault
            raise
        sent = wire.submitted_from_proto(answer)
        if sent.delivered is None and not sent.provider_task_id:
            raise Fault.of("submission_unknown", f"the answer to the submission at {supply.id} names no job")
        return sent

    @faulting
    async def poll(self, channel: Channel, supply: Supply, attempt: Attempt) -> Polled:
        """See the port."""
        asked = pb.PollRequest(
            channel=endpoint(channel), job=wire.job(supply, attempt), provider_task_id=attempt.provider_task_id
        )
        return wire.polled_from_proto(await self._stub.Poll(asked, timeout=channel.timeouts.poll_s + self._delivery_s))

    @faulting
    async def cancel(self, channel: Channel, supply: Supply, attempt: Attempt) -> tuple[bool, Money | None]:
        """See the port."""
        asked = pb.CancelRequest(
            channel=endpoint(channel), job=wire.job(supply, attempt), provider_task_id=attempt.provider_task_id
        )
        answer = await self._stub.Cancel(asked, timeout=channel.timeouts.poll_s + self._timeout_s)
        return answer.cancelled, money_from_proto(answer.reported_cost)

    async def reconcile(self, channel: Channel, supply: Supply, attempt: Attempt, silent_s: float) -> Reconciled:
        """See the port."""
        return await self._reconcile(channel, supply, attempt, None, silent_s)

    async def look_up(
        self, channel: Channel, supply: Supply, attempt: Attempt, until: datetime, silent_s: float
    ) -> Reconciled:
        """See the port."""
        return await self._reconcile(channel, supply, attempt, until, silent_s)

    @faulting
    async def _reconcile(
        self, channel: Channel, supply: Supply, attempt: Attempt, until: datetime | None, silent_s: float
    ) -> Reconciled:
        asked = pb.ReconcileRequest(
            channel=endpoint(channel),
            job=wire.job(supply, attempt),
            submit_time=time_to_proto(attempt.submitted_at),
            latest_submit_time=time_to_proto(until),
            records_only=until is not None,
            silence=seconds_to_proto(silent_s),
            ask_time=time_to_proto(self._clock.now()),
        )
        timeout_s = channel.timeouts.submit_s + channel.timeouts.poll_s + self._delivery_s
        return wire.reconciled_from_proto(await self._stub.Reconcile(asked, timeout=timeout_s))

    @faulting
    async def unresolved_secrets(self, refs: Sequence[str]) -> Mapping[str, str]:
        """See the port."""
        answer = await self._stub.CheckSecrets(pb.CheckSecretsRequest(secret_refs=refs), timeout=self._timeout_s)
        return dict(answer.unresolved)

    @faulting
    async def adapters(self) -> Mapping[str, frozenset[str]]:
        """See the port."""
        answer = await self._stub.ListAdapters(pb.ListAdaptersRequest(), timeout=self._timeout_s)
        return {item.name: frozenset((item.reconcile_by, *item.reconcile_offers)) for item in answer.adapters}
