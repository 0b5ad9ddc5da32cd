"""What the DashScope dialect can do, and where its tasks live."""

from urllib.parse import quote

from services.provider_adapter.domain.adapter import Auth, Manifest
from services.provider_adapter.domain.outcomes import JobState

TASKS = "/tasks"
VIDEOS = "/services/aigc/video-generation/video-synthesis"
PICTURES = "/services/aigc/text2image/image-synthesis"
EDITS = "/services/aigc/image2image/image-synthesis"


def task(task_id: str) -> str:
    """The address of one task."""
    return f"{TASKS}/{quote(task_id, safe='')}"


MANIFEST = Manifest(
    name="dashscope",
    kinds=("video", "image"),
    synchronous_kinds=(),
    auth=Auth(),
    reconcile_by="list",
    cancels=True,
    materials="url",
    limits={
        "region": "model, base URL and key belong to one region",
        "questions": "20 a second in an account",
        "results": "kept for 24 hours",
        "cancel": "tasks that are pending",
    },
    cost_fields={
        "usage.duration": "seconds of video",
        "usage.SR": "resolution",
        "usage.image_count": "images",
    },
    # UNKNOWN is not among them: the task is lost, and nothing will ever be heard of it.
    states={
        "PENDING": JobState.QUEUED,
        "SUSPENDED": JobState.QUEUED,
        "RUNNING": JobState.RUNNING,
        "SUCCEEDED": JobState.SUCCEEDED,
        "FAILED": JobState.FAILED,
        "CANCELED": JobState.CANCELLED,
    },
    read_fields=frozenset(
        {
            "created.output.task_id",
            "task.output.task_status",
            "task.output.code",
            "task.output.message",
            "task.output.video_url",
            "task.output.results.*",
            "task.usage.*",
            "list.total",
            "list.data.*",
        }
    ),
    ignored_fields=frozenset(
        {
            "created.request_id",
            "created.output.task_status",
            "task.request_id",
            "task.output.task_id",
            "task.output.submit_time",
            "task.output.scheduled_time",
            "task.output.end_time",
            "task.output.finished",
            "task.output.orig_prompt",
            "task.output.actual_prompt",
            "task.output.check_audio",
            "task.output.task_metrics",
            "list.request_id",
            "list.total_page",
            "list.page_no",
            "list.page_size",
        }
    ),
)
