"""A routing that films at once: every Task ends by itself, with real pictures, as a test scripts."""

from typing import Any

from google.protobuf.json_format import MessageToDict
from google.type.money_pb2 import Money

from libs.blobs.local import LocalBlobs
from libs.faults.failures import failure_to_proto
from libs.faults.fault import Fault
from libs.kernel.canonical import digest
from pointsman.common.v1 import artifact_pb2
from pointsman.routing.v1 import routing_service_pb2, task_pb2
from tests.support.front import OpenRouting
from tests.support.media import picture

SUPPLY = "a/one"


class FilmRouting(OpenRouting):
    """One yuan a Task. `refused`: by node, how many of its next Tasks moderation refuses."""

    def __init__(self, blobs: LocalBlobs) -> None:
        super().__init__()
        self._blobs = blobs
        self.refused: dict[str, int] = {}
        self.orders: dict[str, dict[str, Any]] = {}
        """By node: the input that was handed over last."""
        self.supplies: dict[str, str] = {}
        self.submitted: list[str] = []
        """Ids of Tasks, in the order in which they came."""
        self.paused: dict[str, bool] = {}

    async def SubmitTask(self, request: Any, context: Any) -> Any:
        """Tells what it may cost, or makes it."""
        if request.validate_only:
            if request.model == "unknown":
                raise Fault.of("model_not_published", "model 'unknown' is not published")
            if request.options.supply_id == "nobody":
                raise Fault.invalid(("/options/supply_id", "'nobody' is not bound to the model; name one of a/one"))
            worst = Money(currency_code="CNY", units=2)
            estimate = routing_service_pb2.Estimate(worst_cost=worst, max_attempts=2)
            return routing_service_pb2.SubmitTaskResponse(estimate=estimate)
        reply = await super().SubmitTask(request, context)
        if request.request_id not in self.submitted:
            self.submitted.append(request.request_id)
            node = request.node_id
            self.orders[node] = MessageToDict(request.input)
            self.supplies[node] = request.options.supply_id
            if not request.cancel_requested:
                await self._end(self.tasks[request.request_id], node, request.options.supply_id or SUPPLY)
        return reply

    async def _end(self, task: task_pb2.Task, node: str, supply: str) -> None:
        attempt = task_pb2.Attempt(id=f"{task.id}-1", number=1, supply_id=supply, channel_id="a", task_id=task.id)
        attempt.provider_task_id = f"job-{node}"
        task.revision += 1
        if self.refused.get(node, 0):
            self.refused[node] -= 1
            failure = failure_to_proto(Fault.of("content_rejected", "moderation refused the prompt"))
            task.state, attempt.state = task_pb2.TASK_STATE_FAILED, task_pb2.ATTEMPT_STATE_FAILED
            task.failure.CopyFrom(failure)
            attempt.failure.CopyFrom(failure)
        else:
            colour = int(digest([node, self.orders[node], supply])[:2], 16)
            blob = await self._blobs.put(picture(colour=colour), "image/png")
            made = artifact_pb2.Artifact(sha256=blob.sha256, media_type="image/png", size_bytes=blob.bytes)
            task.state, attempt.state = task_pb2.TASK_STATE_SUCCEEDED, task_pb2.ATTEMPT_STATE_SUCCEEDED
            cost = Money(currency_code="CNY", units=1)
            task.cost.CopyFrom(cost)
            attempt.cost.CopyFrom(cost)
            task.result.artifacts.append(made)
        task.attempts.append(attempt)

    async def PauseTasks(self, request: Any, context: Any) -> Any:
        """Notes it."""
        self.paused |= dict.fromkeys(request.task_ids, request.paused)
        return routing_service_pb2.PauseTasksResponse()

    async def RaiseAlert(self, request: Any, context: Any) -> Any:
        """Taken."""
        return routing_service_pb2.RaiseAlertResponse()
