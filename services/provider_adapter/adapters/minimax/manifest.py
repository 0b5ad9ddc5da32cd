"""What the MiniMax dialect can do, and which of its two interfaces a model belongs to."""

import re

from services.provider_adapter.domain.adapter import Auth, Manifest
from services.provider_adapter.domain.job import Job
from services.provider_adapter.domain.outcomes import JobState

FIRST = "/v1/video_generation"
FIRST_QUERY = "/v1/query/video_generation"
FILES = "/v1/files/retrieve"
SECOND = "/v2/video_generation"
SECOND_QUERY = "/v2/query/video_generation"

_OF_THE_FIRST = re.compile(r"MiniMax-Hailuo-|[TIS]2V-|video-01", re.IGNORECASE)


def second(job: Job) -> bool:
    """Whether the job's model is one of the second interface; a model that nobody knows yet is."""
    return _OF_THE_FIRST.match(job.model) is None


def accepted(base_resp: object) -> bool:
    """Whether an answer says that all went well: `status_code` 0, or no word of it at all."""
    return not isinstance(base_resp, dict) or base_resp.get("status_code") in (0, None)


_TASK = ("id", "status", "error.*", "content.url", "resolution", "ratio", "duration", "usage.*")

MANIFEST = Manifest(
    name="minimax",
    kinds=("video",),
    synchronous_kinds=(),
    auth=Auth(),
    reconcile_by="list",
    cancels=True,
    limits={
        "prompt": "7000 characters; 2000 with Hailuo and older models",
        "reference images": "0-9; 1 with Hailuo and older models, as the subject",
        "reference videos": "0-3, 2-15 s each, 15 s together; none with Hailuo and older models",
        "reference audios": "0-3, 2-15 s each, 15 s together; none with Hailuo and older models",
        "first and last frame": "never beside references",
        "duration": "4-15 s; 6 or 10 s with Hailuo and older models",
        "resolution": "768P, 2K; 512P, 768P, 1080P with Hailuo and older models",
        "request": "64 MB",
        "records": "7 days; the URL of a clip some hours, a new one at every poll",
    },
    cost_fields={
        "task.task.usage.output_seconds": "seconds",
        "task.task.usage.input_seconds": "seconds of input videos",
        "task.task.usage.input_image_count": "input images",
    },
    states={
        "preparing": JobState.QUEUED,
        "queueing": JobState.QUEUED,
        "processing": JobState.RUNNING,
        "success": JobState.SUCCEEDED,
        "fail": JobState.FAILED,
        "queued": JobState.QUEUED,
        "running": JobState.RUNNING,
        "succeeded": JobState.SUCCEEDED,
        "failed": JobState.FAILED,
        "expired": JobState.FAILED,
        "cancelled": JobState.CANCELLED,
    },
    read_fields=frozenset(
        {
            "created.task_id",
            "created.base_resp.status_code",
            "task.base_resp.status_code",
            "task.base_resp.status_msg",
            "task.status",
            "task.file_id",
            "task.video_width",
            "task.video_height",
            *(f"task.task.{name}" for name in _TASK),
            "file.base_resp.status_code",
            "file.file.download_url",
            "list.items.*",
            "list.total",
        }
    ),
    ignored_fields=frozenset(
        {
            "created.base_resp.status_msg",
            "task.task_id",
            "task.task.model",
            "task.task.created_at",
            "task.task.updated_at",
            "task.task.content.prompt",
            "task.task.task_type",
            "task.task.modality",
            "file.base_resp.status_msg",
            "file.file.file_id",
            "file.file.bytes",
            "file.file.created_at",
            "file.file.filename",
            "file.file.purpose",
            "file.file.backup_download_url",
            "list.base_resp",
        }
    ),
)
