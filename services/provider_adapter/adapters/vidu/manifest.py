"""What the Vidu dialect can do."""

from services.provider_adapter.domain.adapter import Auth, Manifest
from services.provider_adapter.domain.outcomes import JobState

WORDS = "/text2video"
FRAME = "/img2video"
FRAMES = "/start-end2video"
REFERENCES = "/reference2video"
TASKS = "/tasks"

MANIFEST = Manifest(
    name="vidu",
    kinds=("video",),
    synchronous_kinds=(),
    auth=Auth(prefix="Token "),
    reconcile_by="none",
    cancels=True,
    limits={
        "prompt": "2000 characters",
        "reference images": "1-7; 1-3 with vidu2.0",
        "first and last frame": "one or two pictures, never beside references",
        "image": "png, jpeg, webp; 50 MB; 128 px at least; 1:4-4:1",
        "duration": "1-10 s; 5 s with viduq1; 4 or 8 s with vidu2.0",
        "resolution": "360p, 540p, 720p, 1080p by model",
        "ratio": "16:9, 9:16, 1:1; 4:3, 3:4 with q2",
        "request": "20 MB",
        "records": "the URL of a clip 24 h",
    },
    cost_fields={"task.credits": "credits"},
    states={
        "created": JobState.QUEUED,
        "queueing": JobState.QUEUED,
        "processing": JobState.RUNNING,
        "success": JobState.SUCCEEDED,
        "failed": JobState.FAILED,
        "cancelled": JobState.CANCELLED,
        "canceled": JobState.CANCELLED,
    },
    read_fields=frozenset(
        {
            "created.task_id",
            "task.state",
            "task.err_code",
            "task.err_msg",
            "task.credits",
            "task.creations",
            "task.creations[].url",
        }
    ),
    ignored_fields=frozenset(
        {
            *(
                f"created.{name}"
                for name in (
                    *("state", "model", "style", "prompt", "images", "subjects", "videos", "duration", "seed"),
                    *("aspect_ratio", "resolution", "bgm", "audio", "voice_id", "is_rec", "movement_amplitude"),
                    *("payload", "off_peak", "credits", "watermark", "wm_position", "wm_url", "meta_data"),
                    *("created_at", "callback_url"),
                )
            ),
            "task.id",
            "task.payload",
            "task.bgm",
            "task.off_peak",
            "task.created_at",
            "task.progress",
            "task.creations[].id",
            "task.creations[].cover_url",
            "task.creations[].watermarked_url",
            "task.creations[].moderation_url",
            "task.creations[].video",
        }
    ),
)
