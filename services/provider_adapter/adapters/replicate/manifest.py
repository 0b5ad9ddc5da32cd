"""What the Replicate dialect can do, and where predictions live."""

from urllib.parse import quote

from services.provider_adapter.domain.adapter import Auth, Manifest
from services.provider_adapter.domain.outcomes import JobState

PREDICTIONS = "/predictions"


def prediction(prediction_id: str) -> str:
    """The address of one prediction."""
    return f"{PREDICTIONS}/{quote(prediction_id, safe='')}"


MANIFEST = Manifest(
    name="replicate",
    kinds=("video", "image"),
    synchronous_kinds=(),
    auth=Auth(),
    reconcile_by="list",
    cancels=True,
    materials="url",
    limits={
        "models": "owner/name, owner/name:version, or a version alone",
        "creations": "600 a minute; 6 a minute below 5 USD of credit",
        "results": "kept for 1 hour",
    },
    cost_fields={
        "metrics.predict_time": "seconds of hardware",
        "metrics.image_count": "images",
        "metrics.video_output_duration_seconds": "seconds of video",
    },
    states={
        "starting": JobState.QUEUED,
        "processing": JobState.RUNNING,
        "succeeded": JobState.SUCCEEDED,
        "failed": JobState.FAILED,
        # its deadline passed before it could begin; it is not charged
        "aborted": JobState.FAILED,
        "canceled": JobState.CANCELLED,
    },
    read_fields=frozenset(
        {
            "created.id",
            "task.status",
            "task.error.*",
            "task.output.*",
            "task.metrics.*",
            "list.results.*",
            "list.next",
        }
    ),
    ignored_fields=frozenset(
        {
            f"{operation}.{name}"
            for operation in ("created", "task")
            for name in (
                "model", "version", "input", "logs", "urls", "created_at", "started_at", "completed_at", "data_removed",
                "source", "webhook", "webhook_events_filter", "deadline", "deployment", "stream",
            )
        }
        | {"created.status", "created.error", "created.output", "created.metrics", "task.id", "list.previous"}
    ),
)  # fmt: skip
