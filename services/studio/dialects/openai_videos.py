"""Clips in the OpenAI dialect: `seconds` is a text out of a few, and the bytes are behind the key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.studio.dialects import given
from services.studio.domain import jobs
from services.studio.domain.accounts import Model
from services.studio.domain.jobs import Task, VideoJob
from services.studio.domain.refusals import Reason, Refusal

SECONDS = ("4", "8", "12")
SIZES = {
    "1280x720": ("720p", "16:9"),
    "720x1280": ("720p", "9:16"),
    "1792x1024": ("1024p", "16:9"),
    "1024x1792": ("1024p", "9:16"),
}
KEPT_S = 24 * 3600
PAGE = 20
MOST = 100
_PIXELS = {told: size for size, told in SIZES.items()}
_STATES = {
    jobs.QUEUED: "queued",
    jobs.RUNNING: "in_progress",
    jobs.SUCCEEDED: "completed",
    jobs.FAILED: "failed",
    jobs.CANCELLED: "failed",
    jobs.EXPIRED: "failed",
}
_EXPIRED = {"code": "video_generation_timed_out", "message": "The video could not be started in time."}


def read_video(body: Mapping[str, Any], model: Model) -> VideoJob:
    """Reads a job of a clip. Raises Refusal where the model cannot do what is asked."""
    if not isinstance(body.get("seconds", ""), str):  # the provider refuses numbers here
        raise Refusal(Reason.PARAMETER_INVALID, "Invalid type for 'seconds': expected a string.", "seconds")
    seconds = int(given.one_of(body, "seconds", "4", SECONDS))
    resolution, ratio = SIZES[given.one_of(body, "size", "720x1280", tuple(SIZES))]
    if resolution not in model.resolutions or not model.duration_min_s <= seconds <= model.duration_max_s:
        raise Refusal(Reason.PARAMETER_INVALID, f"{model.id} does not make this.", "size")
    reference = body.get("input_reference") or {}
    if not isinstance(reference, Mapping):
        raise Refusal(Reason.PARAMETER_INVALID, "Invalid type for 'input_reference'.", "input_reference")
    return VideoJob(
        prompt=given.words(body),
        duration_s=seconds,
        resolution=resolution,
        ratio=ratio,
        seed=-1,
        first_frame=given.text(reference, "image_url"),
    )


def video_view(task: Task) -> dict[str, Any]:
    """The job of a clip."""
    done = task.status == jobs.SUCCEEDED
    error = {"code": task.error.code, "message": task.error.message} if task.error else None
    return {
        "id": task.id,
        "object": "video",
        "model": task.model,
        "status": _STATES[task.status],
        "progress": 100 if done else 0,
        "prompt": task.job.prompt,
        "created_at": int(task.created_at),
        "completed_at": int(task.updated_at) if done else None,
        "expires_at": int(task.updated_at) + KEPT_S if done else None,
        "seconds": str(task.job.duration_s),
        "size": _PIXELS[task.job.resolution, task.job.ratio],
        "error": _EXPIRED if task.status == jobs.EXPIRED else error,
        "remixed_from_video_id": None,
    }


def list_view(tasks: list[Task], after: str, limit: int) -> dict[str, Any]:
    """Clips behind the one of id `after`."""
    ids = [task.id for task in tasks]
    start = ids.index(after) + 1 if after in ids else 0
    page = [video_view(task) for task in tasks[start : start + limit]]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
    return {"object": "list", "data": page, **ends, "has_more": start + limit < len(tasks)}
