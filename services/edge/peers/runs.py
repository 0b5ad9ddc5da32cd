"""Runs over its stub."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration

from libs.faults.fault import Fault
from libs.rpc.faulting import faulting, faults_from_rpc
from libs.rpc.values import struct_from
from pointsman.runs.v1 import runs_service_pb2 as pb
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceStub
from services.edge.domain import level_shapes, run_shapes, shapes
from services.edge.domain.decisions import Command, Redrive
from services.edge.domain.orders import Order
from services.edge.wire import levels as wire_levels
from services.edge.wire import runs as wire_runs

TIMEOUT_S = 10.0
CREATE_TIMEOUT_S = 20.0
LEVELS_TIMEOUT_S = 30.0
"""It reads the events of a thousand Runs."""
JOIN_MARGIN_S = 5.0
FOLLOW_TIMEOUT_S = 600.0
"""A followed stream is opened anew after this long: every call has a deadline, and no stream needs to end for it."""


class RunsPeer:
    """Implements `ports.Runs`."""

    def __init__(self, channel: Any, follow_timeout_s: float = FOLLOW_TIMEOUT_S) -> None:
        self._stub: Any = RunsServiceStub(channel)
        self._follow_timeout_s = follow_timeout_s

    @faulting
    async def replay(self, tenant: str, key: str, fingerprint: str) -> shapes.Run | None:
        """See the port."""
        request = pb.FindRunByKeyRequest(tenant=tenant, idempotency_key=key, fingerprint=fingerprint)
        reply = await self._stub.FindRunByKey(request, timeout=TIMEOUT_S)
        return wire_runs.run(reply.run) if reply.HasField("run") else None

    @faulting
    async def create(
        self, tenant: str, order: Order, deadline: datetime | None, key: str, fingerprint: str
    ) -> tuple[shapes.Run, bool]:
        """See the port."""
        request = wire_runs.creation(tenant, order, deadline, key, fingerprint)
        reply = await self._stub.CreateRun(request, timeout=CREATE_TIMEOUT_S)
        return wire_runs.run(reply.run), reply.replayed

    @faulting
    async def check(self, tenant: str, order: Order) -> None:
        """See the port."""
        request = wire_runs.creation(tenant, order, None, "", "")
        request.validate_only = True
        await self._stub.CreateRun(request, timeout=CREATE_TIMEOUT_S)

    @faulting
    async def get(self, tenant: str, run_id: str) -> tuple[shapes.Run, int]:
        """See the port."""
        reply = await self._stub.GetRun(pb.GetRunRequest(run_id=run_id, tenant=tenant), timeout=TIMEOUT_S)
        return wire_runs.run(reply.run), reply.run.last_sequence

    @faulting
    async def page(
        self, tenant: str, statuses: Sequence[str], label: str, size: int, token: str
    ) -> tuple[list[shapes.Run], str]:
        """See the port."""
        states = wire_runs.states(statuses)
        request = pb.ListRunsRequest(tenant=tenant, states=states, label=label, page_size=size, page_token=token)
        reply = await self._stub.ListRuns(request, timeout=TIMEOUT_S)
        return [wire_runs.run(item) for item in reply.runs], reply.next_page_token

    @faulting
    async def join(self, tenant: str, run_id: str, timeout_s: float) -> shapes.Run:
        """See the port."""
        wait = Duration()
        wait.FromTimedelta(timedelta(seconds=timeout_s))
        request = pb.JoinRunRequest(run_id=run_id, tenant=tenant, timeout=wait)
        reply = await self._stub.JoinRun(request, timeout=timeout_s + JOIN_MARGIN_S)
        return wire_runs.run(reply.run)

    @faulting
    async def cancel(self, tenant: str, run_id: str, reason: str, who: str) -> shapes.Run:
        """See the port."""
        request = pb.CancelRunRequest(run_id=run_id, tenant=tenant, reason=reason, actor=who)
        reply = await self._stub.CancelRun(request, timeout=TIMEOUT_S)
        return wire_runs.run(reply.run)

    @faulting
    async def pause(self, tenant: str, run_id: str, reason: str, command: Command) -> tuple[shapes.Run, bool]:
        """See the port."""
        request = pb.PauseRunRequest(run_id=run_id, tenant=tenant, reason=reason)
        request.request_id, request.actor = command.id, command.who
        reply = await self._stub.PauseRun(request, timeout=TIMEOUT_S)
        return wire_runs.run(reply.run), reply.replayed

    @faulting
    async def resume(self, tenant: str, run_id: str, reason: str, command: Command) -> tuple[shapes.Run, bool]:
        """See the port."""
        request = pb.ResumeRunRequest(run_id=run_id, tenant=tenant, reason=reason)
        request.request_id, request.actor = command.id, command.who
        reply = await self._stub.ResumeRun(request, timeout=TIMEOUT_S)
        return wire_runs.run(reply.run), reply.replayed

    @faulting
    async def steer(
        self, tenant: str, run_id: str, kind: str, data: dict[str, Any], command: Command
    ) -> tuple[run_shapes.Steered, bool]:
        """See the port."""
        told = struct_from(data)
        request = pb.SteerRunRequest(run_id=run_id, tenant=tenant, kind=kind, data=told, request_id=command.id)
        reply = await self._stub.SteerRun(request, timeout=TIMEOUT_S)
        return wire_runs.steered(reply), reply.replayed

    @faulting
    async def redrive(
        self, tenant: str, run_id: str, asked: Redrive, command: Command
    ) -> tuple[run_shapes.Redriven, bool]:
        """See the port."""
        request = pb.RedriveRunRequest(
            run_id=run_id,
            tenant=tenant,
            node_id=asked.node,
            input=struct_from(asked.input) if asked.input is not None else None,
            reason=asked.reason,
            preview=asked.preview,
            request_id=command.id,
            supply_id=asked.supply,
            actor=command.who,
        )
        reply = await self._stub.RedriveRun(request, timeout=CREATE_TIMEOUT_S)
        return wire_runs.redriven(reply), reply.replayed

    @faulting
    async def events(self, tenant: str, run_id: str, after: int, size: int) -> list[shapes.RunEvent]:
        """See the port."""
        request = pb.StreamRunEventsRequest(run_id=run_id, tenant=tenant, after_sequence=after, page_size=size)
        call = self._stub.StreamRunEvents(request, timeout=TIMEOUT_S)
        return [wire_runs.event(item) async for reply in call for item in reply.events]

    async def follow(self, tenant: str, run_id: str, after: int) -> AsyncGenerator[list[shapes.RunEvent], None]:
        """See the port. Opened anew, from where it stood, when its deadline passes."""
        while True:
            try:
                async with aclosing(self._follow_once(tenant, run_id, after)) as batches:
                    async for batch in batches:
                        yield batch
                        after = batch[-1].sequence
                return
            except Fault as fault:
                if fault.code != "deadline_exceeded":
                    raise

    async def _follow_once(self, tenant: str, run_id: str, after: int) -> AsyncGenerator[list[shapes.RunEvent], None]:
        request = pb.StreamRunEventsRequest(run_id=run_id, tenant=tenant, after_sequence=after, follow=True)
        call = self._stub.StreamRunEvents(request, timeout=self._follow_timeout_s)
        try:
            with faults_from_rpc():
                async for reply in call:
                    if reply.events:
                        yield [wire_runs.event(item) for item in reply.events]
        finally:
            call.cancel()

    @faulting
    async def levels(self, window_s: float) -> level_shapes.ServiceLevelReport:
        """See the port."""
        window = Duration()
        window.FromTimedelta(timedelta(seconds=window_s))
        reply = await self._stub.GetServiceLevels(pb.GetServiceLevelsRequest(window=window), timeout=LEVELS_TIMEOUT_S)
        return wire_levels.report(reply)

    @faulting
    async def ping(self) -> None:
        """See the port."""
        await self._stub.ListRuns(pb.ListRunsRequest(tenant="-", page_size=1), timeout=TIMEOUT_S)
