"""The dialect of fal's queue: the model is the path, and every request has a status, a result and a way out.

Errors have two shapes: what a model says against its input is a list under `detail`, each entry with a `type`; what the
queue says is a text under `detail` with an `error_type`, which stands in a header too. A request that failed is
COMPLETED; its error is in the status where the queue failed it, and in the result where the model did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.studio.dialects import given
from services.studio.domain import jobs
from services.studio.domain.accounts import Model
from services.studio.domain.jobs import ImageJob, Task, VideoJob
from services.studio.domain.refusals import Reason, Refusal

BASE = ""
MODEL = "model"
SCHEME = "key"
ERROR_TYPE = "x-fal-error-type"
UNITS = "x-fal-billable-units"

# reason -> (HTTP status, error type)
CODES: dict[Reason, tuple[int, str]] = {
    Reason.UNAUTHENTICATED: (401, "unauthorized"),
    Reason.MODEL_UNKNOWN: (404, "not_found"),
    Reason.PARAMETER_MISSING: (422, "missing"),
    Reason.PARAMETER_INVALID: (422, "value_error"),
    Reason.BODY_INVALID: (422, "json_invalid"),
    Reason.MATERIAL_UNREADABLE: (422, "image_load_error"),
    Reason.MATERIAL_UNREACHABLE: (422, "file_download_error"),
    Reason.CONTENT_INPUT: (422, "content_policy_violation"),
    Reason.CONTENT_OUTPUT: (422, "content_policy_violation"),
    Reason.PERSON_INPUT: (422, "content_policy_violation"),
    Reason.PERSON_OUTPUT: (422, "content_policy_violation"),
    Reason.CONCURRENCY: (429, "concurrent_requests_limit"),
    Reason.TASK_UNKNOWN: (404, "not_found"),
    Reason.TASK_RUNNING: (400, "already_running"),
    Reason.KEY_IN_USE: (409, "conflict"),
    Reason.KEY_REUSED: (422, "value_error"),
    Reason.ROUTE_UNKNOWN: (404, "not_found"),
    Reason.INTERNAL: (500, "internal_error"),
}
MESSAGES = {
    Reason.UNAUTHENTICATED: "No user found for Key ID and Secret",
    Reason.CONTENT_INPUT: "The content was flagged by a content checker.",
    Reason.CONTENT_OUTPUT: "The content was flagged by a content checker.",
    Reason.PERSON_INPUT: "The content was flagged by a content checker.",
    Reason.PERSON_OUTPUT: "The content was flagged by a content checker.",
    Reason.CONCURRENCY: "Concurrent requests limit exceeded",
    Reason.INTERNAL: "Internal Server Error",
}
HEADERS: dict[Reason, dict[str, str]] = {
    Reason.CONCURRENCY: {ERROR_TYPE: "concurrent_requests_limit", "x-fal-needs-retry": "1"}
}
STATUS_TYPES = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    429: "concurrent_requests_limit",
    500: "internal_error",
    503: "runner_scheduling_failure",
    504: "request_timeout",
}
_BY_THE_MODEL = frozenset({"content_policy_violation", "image_load_error", "file_download_error", "value_error"})
_WAITING = {jobs.QUEUED: "IN_QUEUE", jobs.RUNNING: "IN_PROGRESS"}
STOPPED = ("Request cancelled by client", "client_cancelled")
EXPIRED = ("Runner did not start in time", "startup_timeout")


def named(path: str, fields: Mapping[str, Any]) -> str:
    """The model of a submission: the whole path."""
    return path.strip("/")


def refuse(refusal: Refusal, request_id: str) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of a refusal."""
    status, kind = CODES[refusal.reason]
    message = refusal.message or MESSAGES.get(refusal.reason, "The request is not valid.")
    return status, model_error(kind, message, refusal.param) if status == 422 else queue_error(kind, message)


def model_error(kind: str, message: str, param: str = "") -> dict[str, Any]:
    """What a model says against its input."""
    return {"detail": [{"loc": ["body", *filter(None, [param])], "msg": message, "type": kind}]}


def queue_error(kind: str, message: str) -> dict[str, Any]:
    """What the queue says."""
    return {"detail": message, "error_type": kind}


def scripted(status: int, code: str, message: str, request_id: str) -> dict[str, Any]:
    """The error body for a status that the script asked for."""
    kind = code or STATUS_TYPES.get(status, "value_error")
    text = message or "The request failed."
    return model_error(kind, text) if status == 422 else queue_error(kind, text)


def model_unknown(model: str) -> Refusal:
    """The refusal of a model that the account does not have."""
    return Refusal(Reason.MODEL_UNKNOWN, f'Application "{model}" not found')


def read_video(body: Mapping[str, Any], model: Model) -> VideoJob:
    """Reads the input of a model of clips. Raises Refusal where the model cannot do what is asked."""
    first, length = given.text(body, "image_url"), given.text(body, "duration") or "5"
    return VideoJob(
        prompt=given.words(body, first),
        duration_s=given.seconds({"duration": int(length) if length.isdigit() else length}, model),
        resolution=given.one_of(body, "resolution", "720p", model.resolutions),
        ratio=given.ratio(body, "aspect_ratio", first),
        seed=given.seed(body),
        first_frame=first,
        last_frame=given.text(body, "end_image_url"),
        reference_images=given.urls(body, "image_urls", model.reference_images),
        reference_videos=given.urls(body, "video_urls", model.reference_videos),
        reference_audios=given.urls(body, "audio_urls", model.reference_audios),
    )


def read_image(body: Mapping[str, Any], model: Model) -> ImageJob:
    """Reads the input of a model of pictures. Raises Refusal."""
    size = body.get("image_size")
    pixels = size if isinstance(size, Mapping) else {}
    width, height = (given.whole(pixels, side, 1024, 64, 4096) for side in ("width", "height"))
    n = given.whole(body, "num_images", 1, 1, model.n_max)
    references = given.urls(body, "image_urls", model.reference_images)
    return ImageJob(given.words(body), width, height, n, given.seed(body), references, "png", as_url=True)


def created_view(task: Task, base: str) -> dict[str, Any]:
    """The answer to a request that was put into the queue; `base` is the address of owner and app."""
    return {"status": "IN_QUEUE", **_addresses(task, base), "queue_position": 0, "logs": None, "metrics": {}}


def status_view(task: Task, base: str) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of a request's status."""
    view = {"status": _WAITING.get(task.status, "COMPLETED"), **_addresses(task, base), "logs": None}
    if task.status in _WAITING:
        return 202, view | ({"queue_position": 0} if task.status == jobs.QUEUED else {})
    said = _said(task)
    if said is not None and said[1] not in _BY_THE_MODEL:
        view |= {"error": said[0], "error_type": said[1]}
    return 200, view | {"metrics": {"inference_time": round(task.updated_at - task.created_at, 3)}}


def result_view(task: Task, link: Any) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of a request's result; `link(name)` gives the public URL of a file of the studio."""
    if task.status in _WAITING:
        return 400, {"detail": "Request is still in progress"}
    said = _said(task)
    if said is not None:
        by_model = said[1] in _BY_THE_MODEL
        return (422, model_error(said[1], said[0])) if by_model else (500, queue_error(said[1], said[0]))
    if task.pictures is None:
        clip = {"url": link(task.files["video"]), "content_type": "video/mp4", "file_name": task.files["video"]}
        return 200, {"video": clip, "seed": task.job.seed}
    size = {"width": task.pictures.width, "height": task.pictures.height, "content_type": "image/png"}
    pictures = [{"url": link(name), **size} for name in task.files.values()]
    black = [False] * len(pictures)
    return 200, {"images": pictures, "seed": task.job.seed, "has_nsfw_concepts": black, "prompt": task.job.prompt}


def units(task: Task) -> str:
    """What the header of a result says is charged: seconds of a clip, or pictures."""
    return str(task.job.duration_s if task.pictures is None else len(task.files))


def _said(task: Task) -> tuple[str, str] | None:
    """Message and type of the error in which a request ended, None where it did not."""
    if task.error is not None:
        return task.error.message, task.error.code
    return {jobs.CANCELLED: STOPPED, jobs.EXPIRED: EXPIRED}.get(task.status)


def _addresses(task: Task, base: str) -> dict[str, Any]:
    request = f"{base}/requests/{task.id}"
    places = {"response_url": request, "status_url": f"{request}/status", "cancel_url": f"{request}/cancel"}
    return {"request_id": task.id, **places}
