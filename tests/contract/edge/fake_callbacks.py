"""A stand-in for the callbacks of `runs`."""

from typing import Any

from libs.faults.fault import Fault
from libs.rpc.values import time_to_proto
from pointsman.runs.v1 import callback_pb2
from pointsman.runs.v1 import callback_service_pb2 as pb
from pointsman.runs.v1.callback_service_pb2_grpc import CallbackServiceServicer
from tests.contract.edge.fake_runs import FakeRuns
from tests.support.worlds import START


class FakeCallbacks(CallbackServiceServicer):
    """Messages by Run, and secrets that count."""

    def __init__(self, runs: FakeRuns) -> None:
        self._runs = runs
        self.callbacks: dict[str, list[callback_pb2.Callback]] = {}
        self.rotated: list[str] = []

    def add(self, run_id: str, state: str, **fields: Any) -> None:
        """A message about that Run."""
        told = callback_pb2.Callback(
            id=f"e-{run_id}", run_id=run_id, type="run.completed", url="https://user.example/hook",
            state=callback_pb2.CallbackState.Value(f"CALLBACK_STATE_{state}"), create_time=time_to_proto(START),
            **fields,
        )  # fmt: skip
        self.callbacks.setdefault(run_id, []).append(told)

    async def ListCallbacks(self, request: pb.ListCallbacksRequest, context: Any) -> pb.ListCallbacksResponse:
        """Those of one Run."""
        run = self._runs.runs.get(request.run_id)
        if run is None or run.tenant != request.tenant:
            raise Fault.of("not_found", f"run {request.run_id!r} does not exist")
        return pb.ListCallbacksResponse(callbacks=self.callbacks.get(request.run_id, []))

    async def RotateSecret(self, request: pb.RotateSecretRequest, context: Any) -> pb.RotateSecretResponse:
        """Another secret."""
        self.rotated.append(request.tenant)
        return pb.RotateSecretResponse(secret=f"whsec_{len(self.rotated)}")
