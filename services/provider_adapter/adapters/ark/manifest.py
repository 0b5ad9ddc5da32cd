"""What the Ark dialect can do."""

from services.provider_adapter.domain.adapter import Auth, Manifest
from services.provider_adapter.domain.outcomes import JobState

TASKS = "/contents/generations/tasks"
IMAGES = "/images/generations"

MANIFEST = Manifest(
    name="ark",
    kinds=("video", "image"),
    synchronous_kinds=("image",),
    auth=Auth(),
    reconcile_by="list",
    cancels=True,
    limits={
        "prompt": "no limit told; the request 64 MB",
        "reference images": "1-9; 300-6000 px, 0.4-2.5 wide, 30 MB each",
        "reference videos": "0-3; 2-15 s each, 15 s together, 50 MB, mp4 or mov",
        "reference audios": "0-3; 2-15 s each, 15 s together, 15 MB, never alone",
        "first and last frame": "never beside references",
        "duration": "4-15 s; up to 30 s with 2.5, 2-12 s with 1.x",
        "resolution": "480p, 720p, 1080p, 4k by model",
        "pictures": "sets of up to 15, 1K, 2K, 4K or WxH",
        "account": "200 CNY or a resource pack to call at all",
        "records": "7 days; the URL of a clip 24 h",
    },
    cost_fields={
        "task.usage.completion_tokens": "tokens",
        "task.duration": "seconds",
        "image.usage.generated_images": "images",
        "image.usage.output_tokens": "tokens",
    },
    states={
        "queued": JobState.QUEUED,
        "running": JobState.RUNNING,
        "succeeded": JobState.SUCCEEDED,
        "failed": JobState.FAILED,
        "expired": JobState.FAILED,
        "cancelled": JobState.CANCELLED,
    },
    read_fields=frozenset(
        {
            "created.id",
            "task.id",
            "task.status",
            "task.error.*",
            "task.content.video_url",
            "task.usage.*",
            "task.seed",
            "task.resolution",
            "task.ratio",
            "task.duration",
            "task.frames",
            "task.framespersecond",
            "task.generate_audio",
            "task.safety_identifier",
            "task.created_at",
            "list.items.*",
            "list.total",
            "image.data[].url",
            "image.data[].b64_json",
            "image.data[].size",
            "image.data[].error.*",
            "image.usage.*",
        }
    ),
    ignored_fields=frozenset(
        {
            "created.safety_identifier",
            "created.model",
            "created.status",
            "created.created_at",
            "task.model",
            "task.updated_at",
            "task.content.last_frame_url",
            "task.content.file_url",
            "task.content.watermark_url",
            "task.draft",
            "task.draft_task_id",
            "task.service_tier",
            "task.execution_expires_after",
            "task.priority",
            "task.tools",
            "task.subdivisionlevel",
            "task.fileformat",
            "task.revised_prompt",
            "task.callback_url",
            "list.page_num",
            "list.page_size",
            "image.model",
            "image.created",
            "image.data[].output_format",
            "image.tools",
            "image.error",
        }
    ),
)
