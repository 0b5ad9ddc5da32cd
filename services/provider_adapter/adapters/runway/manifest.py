"""What the Runway dialect can do."""

from services.provider_adapter.domain.adapter import Auth, Manifest
from services.provider_adapter.domain.outcomes import JobState

WORDS = "/text_to_video"
PICTURES = "/image_to_video"
CLIP = "/video_to_video"
TASKS = "/tasks"
VERSION = {"x-runway-version": "2024-11-06"}

MANIFEST = Manifest(
    name="runway",
    kinds=("video",),
    synchronous_kinds=(),
    auth=Auth(),
    reconcile_by="none",
    cancels=True,
    limits={
        "prompt": "1000 characters in UTF-16; 2500-3500 with some models",
        "first frame": "required by gen4_turbo; a last frame with veo and seedance models",
        "reference images": "seedance models, never beside frames",
        "reference videos": "one, as the clip that is changed",
        "reference audios": "seedance models, 15 s together, with a prompt",
        "duration": "2-10 s; 4, 6 or 8 s with veo models",
        "ratio": "pixels such as 1280:720, made of resolution and ratio",
        "concurrency": "what is too much is taken and waits as THROTTLED; a 429 is the cap of the day",
        "records": "URLs of a clip 24-48 h, new ones at every poll",
    },
    cost_fields={},
    states={
        "pending": JobState.QUEUED,
        "throttled": JobState.QUEUED,
        "running": JobState.RUNNING,
        "succeeded": JobState.SUCCEEDED,
        "failed": JobState.FAILED,
        "cancelled": JobState.CANCELLED,
    },
    read_fields=frozenset({"created.id", "task.status", "task.failure", "task.failureCode", "task.output"}),
    ignored_fields=frozenset({"task.id", "task.createdAt", "task.progress", "task.updatedAt"}),
)
