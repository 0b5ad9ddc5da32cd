"""The dialect of Replicate's predictions, base path `/v1`. The model is in the path, or its version in the body.

Errors of requests are problem documents; a prediction that failed says why in one text, with a code of the platform.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from services.studio.dialects import given
from services.studio.domain import jobs
from services.studio.domain.accounts import Model
from services.studio.domain.jobs import ImageJob, Task, VideoJob
from services.studio.domain.refusals import Reason, Refusal

BASE = "/v1"
MODEL = "version"
SCHEME = "bearer"
PAGE = 100

# reason -> (HTTP status, title)
CODES: dict[Reason, tuple[int, str]] = {
    Reason.UNAUTHENTICATED: (401, "Unauthenticated"),
    Reason.MODEL_UNKNOWN: (404, "Model not found"),
    Reason.PARAMETER_MISSING: (422, "Input validation failed"),
    Reason.PARAMETER_INVALID: (422, "Input validation failed"),
    Reason.BODY_INVALID: (400, "Invalid JSON"),
    Reason.MATERIAL_UNREADABLE: (422, "Input validation failed"),
    Reason.MATERIAL_UNREACHABLE: (422, "Input validation failed"),
    Reason.CONTENT_INPUT: (422, "E005"),
    Reason.CONTENT_OUTPUT: (422, "E005"),
    Reason.PERSON_INPUT: (422, "E005"),
    Reason.PERSON_OUTPUT: (422, "E005"),
    Reason.CONCURRENCY: (429, "Too many requests"),
    Reason.TASK_UNKNOWN: (404, "Not found"),
    Reason.TASK_RUNNING: (409, "Conflict"),
    Reason.KEY_IN_USE: (409, "Conflict"),
    Reason.KEY_REUSED: (422, "Input validation failed"),
    Reason.ROUTE_UNKNOWN: (404, "Not found"),
    Reason.INTERNAL: (500, "Internal server error"),
}
_FLAGGED = "The input or output was flagged as sensitive. Please try again with different inputs."
MESSAGES = {
    Reason.UNAUTHENTICATED: "You did not pass a valid authentication token",
    Reason.CONTENT_INPUT: _FLAGGED,
    Reason.CONTENT_OUTPUT: _FLAGGED,
    Reason.PERSON_INPUT: _FLAGGED,
    Reason.PERSON_OUTPUT: _FLAGGED,
    Reason.CONCURRENCY: "Request was throttled. Your rate limit resets in ~1s.",
    Reason.INTERNAL: "An unexpected error occurred.",
}
HEADERS: dict[Reason, dict[str, str]] = {Reason.CONCURRENCY: {"Retry-After": "1"}}
STATUS_TITLES = {
    401: "Unauthenticated",
    402: "Insufficient credit",
    404: "Model not found",
    422: "Input validation failed",
    429: "Too many requests",
    500: "Internal server error",
}
_STATES = {
    jobs.QUEUED: "starting",
    jobs.RUNNING: "processing",
    jobs.SUCCEEDED: "succeeded",
    jobs.FAILED: "failed",
    jobs.CANCELLED: "canceled",
    jobs.EXPIRED: "aborted",
}


def named(path: str, fields: Mapping[str, Any]) -> str:
    """The model of a submission: in the path, or its version in the body."""
    _, _, rest = path.partition("/models/")
    return rest.removesuffix("/predictions") if rest else str(fields.get(MODEL) or "")


def problem(status: int, title: str, detail: str) -> dict[str, Any]:
    """The body of a refused request."""
    body: dict[str, Any] = {"title": title, "detail": detail, "status": status}
    return body | ({"retry_after": 1} if status == 429 else {})


def refuse(refusal: Refusal, request_id: str) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of a refusal."""
    status, title = CODES[refusal.reason]
    detail = refusal.message or MESSAGES.get(refusal.reason, "The request is not valid.")
    body = problem(status, title, f"{detail} (E005)" if title == "E005" else detail)
    if refusal.param:
        body["invalid_fields"] = [{"field": f"input.{refusal.param}", "description": detail}]
    return status, body


def scripted(status: int, code: str, message: str, request_id: str) -> dict[str, Any]:
    """The error body for a status that the script asked for."""
    return problem(status, code or STATUS_TITLES.get(status, "Error"), message or "The request failed.")


def model_unknown(model: str) -> Refusal:
    """The refusal of a model that the account does not have."""
    return Refusal(Reason.MODEL_UNKNOWN, "The requested model does not exist, or you do not have access.")


def read_video(body: Mapping[str, Any], model: Model) -> VideoJob:
    """Reads the input of a model of clips. Raises Refusal where the model cannot do what is asked."""
    inputs = _inputs(body)
    first = given.text(inputs, "image")
    return VideoJob(
        prompt=given.words(inputs, first),
        duration_s=given.seconds(inputs, model),
        resolution=given.one_of(inputs, "resolution", "720p", model.resolutions),
        ratio=given.ratio(inputs, "aspect_ratio", first),
        seed=given.seed(inputs),
        first_frame=first,
        last_frame=given.text(inputs, "last_frame_image"),
        reference_images=given.urls(inputs, "reference_images", model.reference_images),
        reference_videos=given.urls(inputs, "reference_videos", model.reference_videos),
        reference_audios=given.urls(inputs, "reference_audios", model.reference_audios),
    )


def read_image(body: Mapping[str, Any], model: Model) -> ImageJob:
    """Reads the input of a model of pictures. Raises Refusal."""
    inputs = _inputs(body)
    width, height = (given.whole(inputs, side, 1024, 64, 4096) for side in ("width", "height"))
    n = given.whole(inputs, "num_outputs", 1, 1, model.n_max)
    references = given.urls(inputs, "image_input", model.reference_images)
    return ImageJob(given.words(inputs), width, height, n, given.seed(inputs), references, "png", as_url=True)


def prediction_view(task: Task, link: Any, base: str) -> dict[str, Any]:
    """A prediction; `link(name)` gives the public URL of a file of the studio, `base` is the address of predictions."""
    ended = task.status not in jobs.ACTIVE
    view: dict[str, Any] = {
        "id": task.id,
        "model": task.model,
        "version": "hidden",
        "input": {"prompt": task.job.prompt} if task.job.prompt else {},
        "logs": "",
        "output": _output(task, link),
        "data_removed": False,
        "error": f"{task.error.message} ({task.error.code})" if task.error else None,
        "status": _STATES[task.status],
        "source": "api",
        "created_at": stamp(task.created_at),
        "started_at": None if task.status == jobs.QUEUED else stamp(task.updated_at),
        "completed_at": stamp(task.updated_at) if ended else None,
        "urls": {"get": f"{base}/{task.id}", "cancel": f"{base}/{task.id}/cancel"},
    }
    if task.status == jobs.SUCCEEDED:
        taken = round(task.updated_at - task.created_at, 3)
        clip = {"video_output_duration_seconds": task.job.duration_s}
        made = clip if task.pictures is None else {"image_count": len(task.files)}
        view["metrics"] = {"predict_time": taken, "total_time": taken, **made}
    return view


def page_of(tasks: list[Task], cursor: str) -> tuple[list[Task], str]:
    """The tasks behind a mark, newest first, and the mark of the page that follows ("" where none does)."""
    ids = [task.id for task in tasks]
    start = ids.index(cursor) + 1 if cursor in ids else 0
    page = tasks[start : start + PAGE]
    return page, page[-1].id if start + PAGE < len(tasks) else ""


def stamp(seconds: float) -> str:
    """A time as Replicate writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _output(task: Task, link: Any) -> Any:
    if task.status != jobs.SUCCEEDED:
        return None
    return link(task.files["video"]) if task.pictures is None else [link(name) for name in task.files.values()]


def _inputs(body: Mapping[str, Any]) -> Mapping[str, Any]:
    inputs = body.get("input")
    if not isinstance(inputs, Mapping):
        raise Refusal(Reason.PARAMETER_MISSING, "input is required")
    return inputs
