"""What the Kling dialect can do."""

from services.provider_adapter.domain.adapter import Auth, Manifest
from services.provider_adapter.domain.job import Job
from services.provider_adapter.domain.outcomes import JobState

WORDS = "/videos/text2video"
FRAMES = "/videos/image2video"
REFERENCES = "/videos/multi-image2video"


def route(job: Job) -> str:
    """Where a job is created, polled and looked up: the kind of input decides."""
    if job.input.get("first_frame"):
        return FRAMES
    return REFERENCES if job.input.get("reference_images") else WORDS


MANIFEST = Manifest(
    name="kling",
    kinds=("video",),
    synchronous_kinds=(),
    auth=Auth(),
    reconcile_by="lookup",
    cancels=False,
    limits={
        "reference images": "1-4",
        "first and last frame": "a last frame beside a first one",
        "duration": "5 or 10 s; 3-15 s with 3.x",
        "resolution": "720p as std, 1080p as pro",
        "concurrency": "by resource pack, account-wide; more is refused with 1303",
        "records": "the URL of a clip 30 days",
    },
    cost_fields={
        "task.data.final_unit_deduction": "units of the resource pack",
        "task.data.task_result.videos[].duration": "seconds",
    },
    states={
        "submitted": JobState.QUEUED,
        "processing": JobState.RUNNING,
        "succeed": JobState.SUCCEEDED,
        "succeeded": JobState.SUCCEEDED,
        "failed": JobState.FAILED,
    },
    read_fields=frozenset(
        {
            "created.code",
            "created.data.task_id",
            "task.code",
            "task.data.task_status",
            "task.data.task_status_msg",
            "task.data.task_result.videos",
            "task.data.task_result.videos[].url",
            "task.data.task_result.videos[].duration",
            "task.data.final_unit_deduction",
            "found.code",
            "found.data.*",
        }
    ),
    ignored_fields=frozenset(
        {
            "created.message",
            "created.request_id",
            "created.data.task_status",
            "created.data.task_info",
            "created.data.created_at",
            "created.data.updated_at",
            "task.message",
            "task.request_id",
            "task.data.task_id",
            "task.data.task_info",
            "task.data.created_at",
            "task.data.updated_at",
            "task.data.final_balance_deduction",
            "task.data.watermark_info",
            "task.data.task_result.videos[].id",
            "task.data.task_result.videos[].watermark_url",
            "found.message",
            "found.request_id",
        }
    ),
)
