"""Pointsman over gRPC, for those who have no HTTP between them and the server: Runs, with the same patience.

async with RpcClient("dns:///127.0.0.1:50051", key, tenant="studio") as pointsman:
    run = await pointsman.create_run("keyframe-image", {"prompt": "a market in the rain"})
    run = await pointsman.result_of(run.id)
"""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Self

import grpc

from libs.client import messages
from libs.client.faults import PointsmanError, Problem, RunUnsuccessful, Unreachable
from libs.client.http import ENDS, JOIN_S, JOINING, MARGIN_S
from libs.client.retrying import Patience, Safety
from libs.client.sending import Means, Tries, patiently
from libs.client.shapes import Event, Run
from libs.faults.fault import Fault
from libs.faults.registry import CODES
from libs.faults.wire import from_rpc_error
from libs.kernel.canonical import digest
from libs.rpc.address import parse
from libs.rpc.channel import open_channel
from pointsman.runs.v1 import runs_service_pb2 as pb
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceStub

TIMEOUT_S = 15.0
STREAM_S = 3600.0
FOREIGN_STATUS = 500


class RpcClient:
    """One server, one key and its tenant. Use inside `async with`. Faults as `http.Client`.

    `channel` is opened by whoever gives it, and closed by them.
    """

    def __init__(
        self,
        target: str,
        key: str,
        *,
        tenant: str,
        patience: Patience | None = None,
        means: Means | None = None,
        new_key: Callable[[], str] = lambda: uuid.uuid4().hex,
        channel: Any = None,
    ) -> None:
        self._target = target
        self._metadata = (("authorization", f"Bearer {key}"),)
        self._tenant = tenant
        self._patience = patience or Patience()
        self._means = means or Means()
        self._new_key = new_key
        self._given = channel
        self._channel: Any = None
        self._runs: Any = None

    async def __aenter__(self) -> Self:
        self._channel = self._given or open_channel(parse(self._target))
        self._runs = RunsServiceStub(self._channel)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._given is None and self._channel is not None:
            await self._channel.close()

    async def _sent(self, method: str, request: Any, timeout_s: float = TIMEOUT_S, final: Any = frozenset()) -> Any:
        async def once() -> Any:
            try:
                return await getattr(self._runs, method)(request, timeout=timeout_s, metadata=self._metadata)
            except grpc.RpcError as error:
                raise fault_of(error) from error

        return await patiently(once, Safety.SAFE, self._patience, self._means, final=final)

    async def create_run(
        self,
        model: str,
        input: Mapping[str, Any],
        *,
        labels: Mapping[str, str] | None = None,
        idempotency_key: str = "",
    ) -> Run:
        """A new Run, at work; one Run however often it has to be sent. Files go in as artifacts."""
        request = messages.creation(self._tenant, model, input, labels or {})
        request.idempotency_key = idempotency_key or self._new_key()
        request.fingerprint = digest({"model": model, "input": dict(input), "labels": dict(labels or {})})
        return messages.run((await self._sent("CreateRun", request)).run)

    async def get_run(self, run_id: str) -> Run:
        """The Run now."""
        return messages.run((await self._sent("GetRun", pb.GetRunRequest(run_id=run_id, tenant=self._tenant))).run)

    async def cancel_run(self, run_id: str, reason: str = "") -> Run:
        """Ask for its end."""
        request = pb.CancelRunRequest(run_id=run_id, tenant=self._tenant, reason=reason)
        return messages.run((await self._sent("CancelRun", request)).run)

    async def finished(self, run_id: str) -> Run:
        """The Run at rest, however it ended."""
        request = pb.JoinRunRequest(run_id=run_id, tenant=self._tenant)
        request.timeout.FromSeconds(JOIN_S)
        while True:
            try:
                reply = await self._sent("JoinRun", request, JOIN_S + MARGIN_S, JOINING)
            except Problem as problem:
                if problem.code not in JOINING:
                    raise
            else:
                return messages.run(reply.run)

    async def result_of(self, run_id: str) -> Run:
        """The Run with its result. RunUnsuccessful if it came to rest in any other state."""
        run = await self.finished(run_id)
        if run.status != "succeeded":
            raise RunUnsuccessful(run)
        return run

    async def events(self, run_id: str, after: int = 0) -> AsyncIterator[Event]:
        """The events of a Run behind a sequence, each once and in order, until the Run rests."""
        tries = Tries(self._patience, self._means)
        while True:
            try:
                async with aclosing(self._stream(run_id, after)) as events:
                    async for event in events:
                        if event.sequence > after:
                            after = event.sequence
                            tries.progress()
                            yield event
                            if event.kind in ENDS:
                                return
                return  # the server ends a stream by itself only where nothing follows
            except PointsmanError as error:
                await tries.after(error, Safety.SAFE)

    async def _stream(self, run_id: str, after: int) -> AsyncGenerator[Event, None]:
        request = pb.StreamRunEventsRequest(run_id=run_id, tenant=self._tenant, after_sequence=after, follow=True)
        call = self._runs.StreamRunEvents(request, timeout=STREAM_S, metadata=self._metadata)
        try:
            async for reply in call:
                for item in reply.events:
                    yield messages.event(item)
        except grpc.RpcError as error:
            raise fault_of(error) from error
        finally:
            call.cancel()


def fault_of(error: grpc.RpcError) -> PointsmanError:
    """The fault in a failed call: what the server said, or that nobody did."""
    fault: Fault = from_rpc_error(error)
    if fault.metadata.get("transport_status") == "UNAVAILABLE":
        return Unreachable("the server cannot be reached")
    entry = CODES.get(fault.code)
    return Problem(
        status=entry.http_status if entry else FOREIGN_STATUS,
        code=fault.code,
        detail=fault.message,
        retryable=fault.retryable,
        category=fault.category.value,
        scope=fault.scope.value,
        retry_after_s=None if fault.retry_after_ms is None else fault.retry_after_ms / 1000,
        errors=tuple((item.pointer, item.reason) for item in fault.errors),
    )
