"""What the fal dialect can do, and where its requests live."""

from urllib.parse import quote

from services.provider_adapter.domain.adapter import Auth, Manifest
from services.provider_adapter.domain.job import Job
from services.provider_adapter.domain.outcomes import JobState

ERROR_HEADER = "x-fal-error-type"
UNITS_HEADER = "x-fal-billable-units"
STOPPED = "client_cancelled"
_SPACES = frozenset({"workflows", "comfy"})  # they stand before owner and app


def submission(job: Job) -> str:
    """Where a model takes requests: the whole of its id, with the path of the endpoint."""
    return "/" + quote(job.model.strip("/"))


def request_path(job: Job, request_id: str) -> str:
    """Where a request is asked about: owner and app alone. With the endpoint's path fal answers 405."""
    parts = job.model.strip("/").split("/")
    owned = parts[: 3 if parts[0] in _SPACES else 2]
    return f"/{quote('/'.join(owned))}/requests/{quote(request_id, safe='')}"


MANIFEST = Manifest(
    name="fal",
    kinds=("video", "image"),
    synchronous_kinds=(),
    auth=Auth(prefix="Key "),
    reconcile_by="none",
    cancels=True,
    materials="url",
    limits={"duration": "whole seconds, as a text", "models": "owner/app or owner/app/endpoint"},
    cost_fields={f"header {UNITS_HEADER}": "billable units of the model"},
    # A failed request is COMPLETED as well: what its error says decides.
    states={
        "IN_QUEUE": JobState.QUEUED,
        "IN_PROGRESS": JobState.RUNNING,
        "COMPLETED": JobState.SUCCEEDED,
        "error": JobState.FAILED,
        STOPPED: JobState.CANCELLED,
    },
    read_fields=frozenset(
        {
            "created.request_id",
            "task.status",
            "task.request_id",
            "task.response_url",
            "task.error.*",
            "task.error_type",
            "result.video.*",
            "result.videos.*",
            "result.image.*",
            "result.images.*",
            "result.seed",
            "result.has_nsfw_concepts.*",
        }
    ),
    ignored_fields=frozenset(
        {
            "created.status",
            "created.gateway_request_id",
            "created.status_url",
            "created.response_url",
            "created.cancel_url",
            "created.queue_position",
            "created.logs",
            "created.metrics",
            "task.gateway_request_id",
            "task.status_url",
            "task.cancel_url",
            "task.queue_position",
            "task.logs",
            "task.metrics",
            "result.prompt",
            "result.actual_prompt",
            "result.revised_prompt",
            "result.timings",
            "result.description",
        }
    ),
)
