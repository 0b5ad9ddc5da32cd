"""A provider_adapter whose providers answer at once, or fail as chance says: for runs of many Tasks.

It keeps its own count of what it was asked to do, as the studio does: jobs by token, and the most at once by Supply.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from libs.faults.fault import Fault
from libs.host.hosted import ComposedContext
from pointsman.common.v1 import artifact_pb2, failure_pb2
from pointsman.provider_adapter.v1 import provider_pb2
from pointsman.provider_adapter.v1 import provider_service_pb2 as pb
from pointsman.provider_adapter.v1.provider_service_pb2_grpc import (
    ProviderServiceServicer,
    add_ProviderServiceServicer_to_server,
)

SERVICE = "pointsman.provider_adapter.v1.ProviderService"
RESULT = provider_pb2.ProviderResult(
    artifacts=[artifact_pb2.Artifact(sha256="ab" * 32, media_type="video/mp4", size_bytes=9)]
)
Answer = Callable[[Random, str], Fault | None]
"""What a submission to that Channel meets: None is taken."""


@dataclass
class InstantProvider(ProviderServiceServicer):
    """Each job takes `work_s`. A Channel's `ends` decides what a submission meets; a quarter of the jobs is polled for.

    `chance` alone decides, so that a run with one seed meets the same mixture.
    """

    chance: Random
    ends: Mapping[str, Answer] = field(default_factory=dict)
    work_s: float = 0.0
    jobs: Counter[str] = field(default_factory=Counter)
    busy: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)

    async def Submit(self, request: pb.SubmitRequest, context: Any) -> pb.SubmitResponse:
        """Take it, with its result or an id; or fail. An answer may be lost after the job was taken."""
        token, channel = request.job.client_token, request.channel.channel_id
        fault = self.ends[channel](self.chance, token) if channel in self.ends else None
        if fault is None or fault.code == "submission_unknown":
            self.jobs[token] += 1
            await self._work(channel)
        if fault is not None:
            raise fault
        if self.chance.random() < 0.25:
            return pb.SubmitResponse(provider_task_id=f"job-{token}")
        return pb.SubmitResponse(provider_task_id=f"job-{token}", result=RESULT)

    async def _work(self, channel: str) -> None:
        self.busy[channel] += 1
        self.most[channel] = max(self.most[channel], self.busy[channel])
        try:
            await asyncio.sleep(self.work_s)
        finally:
            self.busy[channel] -= 1

    async def Poll(self, request: pb.PollRequest, context: Any) -> pb.PollResponse:
        """Done; one in ten has failed."""
        if self.chance.random() < 0.1:
            failed = failure_pb2.Failure(
                category=failure_pb2.FAILURE_CATEGORY_SUPPLY,
                scope=failure_pb2.FAILURE_SCOPE_SUPPLY,
                retryable=True,
                code="provider_error",
            )
            return pb.PollResponse(state=provider_pb2.JOB_STATE_FAILED, failure=failed)
        return pb.PollResponse(state=provider_pb2.JOB_STATE_SUCCEEDED, result=RESULT)

    async def Reconcile(self, request: pb.ReconcileRequest, context: Any) -> pb.ReconcileResponse:
        """The truth."""
        token = request.job.client_token
        if self.jobs[token]:
            verdict = provider_pb2.RECONCILE_VERDICT_ACCEPTED
            return pb.ReconcileResponse(verdict=verdict, provider_task_id=f"job-{token}", evidence="its book")
        return pb.ReconcileResponse(verdict=provider_pb2.RECONCILE_VERDICT_NOT_ACCEPTED, evidence="its book")

    async def ListAdapters(self, request: pb.ListAdaptersRequest, context: Any) -> pb.ListAdaptersResponse:
        """One."""
        ark = provider_pb2.Adapter(name="ark", kinds=["video"], reconcile_by="list")
        return pb.ListAdaptersResponse(adapters=[ark])

    async def CheckSecrets(self, request: pb.CheckSecretsRequest, context: Any) -> pb.CheckSecretsResponse:
        """All can be read."""
        return pb.CheckSecretsResponse()

    def context(self) -> ComposedContext:
        """In the place of provider_adapter in a host."""
        add = (SERVICE, lambda server: add_ProviderServiceServicer_to_server(self, server))
        return ComposedContext("provider_adapter", (add,))
