"""Inbound: decode, use-case, encode."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from libs.faults.failures import failure_to_proto
from libs.faults.fault import Fault
from libs.rpc.values import seconds_of
from pointsman.provider_adapter.v1 import provider_service_pb2 as pb
from pointsman.provider_adapter.v1.provider_service_pb2_grpc import ProviderServiceServicer
from services.provider_adapter import wire
from services.provider_adapter.app.cancel import CancelJob
from services.provider_adapter.app.classify import ClassifyFailure
from services.provider_adapter.app.invoke import InvokeCall
from services.provider_adapter.app.poll import PollJob
from services.provider_adapter.app.reconcile import ReconcileJob
from services.provider_adapter.app.stream import StreamCall
from services.provider_adapter.app.submit import SubmitJob
from services.provider_adapter.domain.adapter import Adapter, Quality
from services.provider_adapter.domain.job import Timeouts
from services.provider_adapter.ports import Secrets


@dataclass(frozen=True, slots=True)
class UseCases:
    """Everything that the servicer calls."""

    submit: SubmitJob
    poll: PollJob
    cancel: CancelJob
    reconcile: ReconcileJob
    invoke: InvokeCall
    stream: StreamCall
    classify: ClassifyFailure
    secrets: Secrets
    adapters: Mapping[str, Adapter]
    quality: Mapping[str, Quality]
    timeouts: Timeouts


class ProviderServicer(ProviderServiceServicer):
    """pointsman.provider_adapter.v1.ProviderService."""

    def __init__(self, use: UseCases) -> None:
        self._use = use

    async def Submit(self, request: pb.SubmitRequest, context: Any) -> pb.SubmitResponse:
        """Sends one job, once."""
        endpoint = wire.endpoint_of(request.channel, self._use.timeouts)
        sent = await self._use.submit(endpoint, wire.job_of(request.job))
        result = None if sent.result is None else wire.result_to_proto(sent.result)
        return pb.SubmitResponse(provider_task_id=sent.provider_task_id, result=result)

    async def Poll(self, request: pb.PollRequest, context: Any) -> pb.PollResponse:
        """Asks where a job stands."""
        endpoint = wire.endpoint_of(request.channel, self._use.timeouts)
        task_id = _required(request.provider_task_id, "provider_task_id")
        standing = await self._use.poll(endpoint, wire.job_of(request.job), task_id)
        return wire.polled_to_proto(standing.state, standing.result, standing.failure)

    async def Cancel(self, request: pb.CancelRequest, context: Any) -> pb.CancelResponse:
        """Asks the provider to stop a job."""
        endpoint = wire.endpoint_of(request.channel, self._use.timeouts)
        task_id = _required(request.provider_task_id, "provider_task_id")
        cancelled = await self._use.cancel(endpoint, wire.job_of(request.job), task_id)
        return pb.CancelResponse(cancelled=cancelled.cancelled)

    async def Reconcile(self, request: pb.ReconcileRequest, context: Any) -> pb.ReconcileResponse:
        """Asks the provider's records about an unanswered submission."""
        endpoint = wire.endpoint_of(request.channel, self._use.timeouts)
        if not request.HasField("submit_time"):
            raise Fault.invalid(("/submit_time", "is required"))
        sent_at = request.submit_time.ToDatetime(tzinfo=UTC)
        latest = (
            request.latest_submit_time.ToDatetime(tzinfo=UTC) if request.HasField("latest_submit_time") else sent_at
        )
        silent_s = seconds_of(request.silence) if request.HasField("silence") else None
        asked_at = request.ask_time.ToDatetime(tzinfo=UTC) if request.HasField("ask_time") else None
        job = wire.job_of(request.job)
        look = self._use.reconcile(endpoint, job, sent_at, latest, request.records_only, silent_s, asked_at)
        return wire.reconciled_to_proto(await look)

    async def Invoke(self, request: pb.InvokeRequest, context: Any) -> pb.InvokeResponse:
        """Makes one synchronous call, once."""
        endpoint = wire.endpoint_of(request.channel, self._use.timeouts)
        job, watch = wire.call_of(request.call)
        invoked = await self._use.invoke(endpoint, job, watch)
        return pb.InvokeResponse(
            output=invoked.output,
            artifacts=[wire.artifact_to_proto(item) for item in invoked.artifacts],
            report=wire.report_to_proto(invoked.report, invoked.first_token_s),
        )

    async def InvokeStream(
        self, request: pb.InvokeStreamRequest, context: Any
    ) -> AsyncIterator[pb.InvokeStreamResponse]:
        """The same with the output piece by piece."""
        endpoint = wire.endpoint_of(request.channel, self._use.timeouts)
        job, watch = wire.call_of(request.call)
        async with aclosing(self._use.stream(endpoint, job, watch)) as pieces:
            async for piece in pieces:
                for message in wire.streamed_to_proto(piece, request.together):
                    yield message

    async def ListAdapters(self, request: pb.ListAdaptersRequest, context: Any) -> pb.ListAdaptersResponse:
        """The dialects on offer."""
        use = self._use
        return pb.ListAdaptersResponse(
            adapters=[
                wire.adapter_to_proto(use.adapters[name].manifest, use.quality.get(name, Quality()))
                for name in sorted(use.adapters)
            ]
        )

    async def ClassifyFailure(self, request: pb.ClassifyFailureRequest, context: Any) -> pb.ClassifyFailureResponse:
        """Classifies a reply, by the code path of live traffic."""
        fault = self._use.classify(request.adapter, request.api, request.phase, wire.reply_of(request))
        return pb.ClassifyFailureResponse(failure=failure_to_proto(fault))

    async def CheckSecrets(self, request: pb.CheckSecretsRequest, context: Any) -> pb.CheckSecretsResponse:
        """Tells which secrets can be read; never the secrets."""
        problems = {ref: self._use.secrets.problem(ref) for ref in request.secret_refs}
        return pb.CheckSecretsResponse(unresolved={ref: problem for ref, problem in problems.items() if problem})


def _required(value: str, name: str) -> str:
    if not value:
        raise Fault.invalid((f"/{name}", "is required"))
    return value
