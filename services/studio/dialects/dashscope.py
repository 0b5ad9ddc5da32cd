"""The DashScope dialect, base path `/api/v1`: asynchronous tasks, asked for by a header, of clips and pictures.

A task that nobody knows, or whose time is over, is answered with the state UNKNOWN under a 200.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from services.studio.dialects import given
from services.studio.domain import jobs
from services.studio.domain.accounts import Model
from services.studio.domain.jobs import ImageJob, Task, VideoJob
from services.studio.domain.prices import FRAMES
from services.studio.domain.refusals import Reason, Refusal

BASE = "/api/v1"
MODEL = "model"
SCHEME = "bearer"
VIDEOS = "/services/aigc/video-generation/video-synthesis"
PICTURES = ("/services/aigc/text2image/image-synthesis", "/services/aigc/image2image/image-synthesis")
ASYNC = "x-dashscope-async"
PAGE = 10

# reason -> (HTTP status, code)
CODES: dict[Reason, tuple[int, str]] = {
    Reason.UNAUTHENTICATED: (401, "InvalidApiKey"),
    Reason.MODEL_UNKNOWN: (400, "ModelNotFound"),
    Reason.PARAMETER_MISSING: (400, "InvalidParameter"),
    Reason.PARAMETER_INVALID: (400, "InvalidParameter"),
    Reason.BODY_INVALID: (400, "InvalidParameter"),
    Reason.MATERIAL_UNREADABLE: (400, "InvalidParameter.DataInspection"),
    Reason.MATERIAL_UNREACHABLE: (400, "InvalidParameter.DataInspection"),
    Reason.CONTENT_INPUT: (400, "DataInspectionFailed"),
    Reason.CONTENT_OUTPUT: (400, "DataInspectionFailed"),
    Reason.PERSON_INPUT: (400, "DataInspectionFailed"),
    Reason.PERSON_OUTPUT: (400, "DataInspectionFailed"),
    Reason.CONCURRENCY: (429, "Throttling.RateQuota"),
    Reason.TASK_UNKNOWN: (404, "NotFound"),
    Reason.TASK_RUNNING: (400, "UnsupportedOperation"),
    Reason.KEY_IN_USE: (409, "Conflict"),
    Reason.KEY_REUSED: (400, "InvalidParameter"),
    Reason.ROUTE_UNKNOWN: (404, "InvalidURL"),
    Reason.INTERNAL: (500, "InternalError"),
}
MESSAGES = {
    Reason.UNAUTHENTICATED: "Invalid API-key provided.",
    Reason.CONTENT_INPUT: "Input data may contain inappropriate content.",
    Reason.CONTENT_OUTPUT: "Output data may contain inappropriate content.",
    Reason.PERSON_INPUT: "Input data may contain inappropriate content.",
    Reason.PERSON_OUTPUT: "Output data may contain inappropriate content.",
    Reason.CONCURRENCY: "Requests rate limit exceeded, please try again later.",
    Reason.TASK_RUNNING: "Failed to cancel the task, please confirm if the task is in PENDING status.",
    Reason.INTERNAL: "An internal error has occured, please try again later or contact service support.",
}
HEADERS: dict[Reason, dict[str, str]] = {}
STATUS_CODES = {
    400: "InvalidParameter",
    401: "InvalidApiKey",
    403: "AccessDenied",
    404: "ModelNotFound",
    429: "Throttling.RateQuota",
    500: "InternalError",
    503: "ModelUnavailable",
}
_STATES = {
    jobs.QUEUED: "PENDING",
    jobs.RUNNING: "RUNNING",
    jobs.SUCCEEDED: "SUCCEEDED",
    jobs.FAILED: "FAILED",
    jobs.CANCELLED: "CANCELED",
    jobs.EXPIRED: "UNKNOWN",
}
_SIZES = {f"{w}*{h}": (resolution, ratio) for resolution, sizes in FRAMES.items() for ratio, (w, h) in sizes.items()}


def envelope(code: str, message: str, request_id: str) -> dict[str, Any]:
    """The error body."""
    return {"code": code, "message": message, "request_id": request_id}


def refuse(refusal: Refusal, request_id: str) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of a refusal."""
    status, code = CODES[refusal.reason]
    message = refusal.message or MESSAGES.get(refusal.reason, "The request is not valid.")
    return status, envelope(code, f"{refusal.param}: {message}" if refusal.param else message, request_id)


def scripted(status: int, code: str, message: str, request_id: str) -> dict[str, Any]:
    """The error body for a status that the script asked for."""
    return envelope(code or STATUS_CODES.get(status, "InternalError"), message or "The request failed.", request_id)


def not_asynchronous(request_id: str) -> tuple[int, dict[str, Any]]:
    """The refusal of a call that does not ask for a task."""
    return 403, envelope("AccessDenied", "current user api does not support synchronous calls.", request_id)


def model_unknown(model: str) -> Refusal:
    """The refusal of a model that the account does not have."""
    return Refusal(Reason.MODEL_UNKNOWN, f"Model {model} does not exist.")


def read_video(body: Mapping[str, Any], model: Model) -> VideoJob:
    """Reads a task of a clip. Raises Refusal where the model cannot do what is asked."""
    inputs, asked = _object(body, "input"), _object(body, "parameters")
    media = _media(inputs, model)
    first = next(iter(media["first_frame"]), "") or given.text(inputs, "img_url")
    resolution, ratio = _SIZES.get(given.text(asked, "size"), ("", ""))
    known = [name.upper() for name in model.resolutions]
    return VideoJob(
        prompt=given.words(inputs, first, *media.values()),
        duration_s=given.seconds(asked, model),
        resolution=resolution or given.one_of(asked, "resolution", "720P", known).lower(),
        ratio=ratio or given.ratio(asked, "ratio", first),
        seed=given.seed(asked),
        first_frame=first,
        last_frame=next(iter(media["last_frame"]), ""),
        reference_images=tuple(media["reference_image"]),
        reference_videos=tuple(media["reference_video"]),
    )


def _media(inputs: Mapping[str, Any], model: Model) -> dict[str, list[str]]:
    most = {
        "first_frame": 1,
        "last_frame": int(model.last_frame),
        "reference_image": model.reference_images,
        "reference_video": model.reference_videos,
    }
    media: dict[str, list[str]] = {kind: [] for kind in most}
    for item in inputs.get("media") or ():
        kind = item.get("type") if isinstance(item, Mapping) else None
        if kind not in media or len(media[kind]) >= most[kind]:
            raise Refusal(Reason.PARAMETER_INVALID, f"{model.id} takes no further {kind}", "media")
        media[kind].append(given.text(item, "url"))
    return media


def read_image(body: Mapping[str, Any], model: Model) -> ImageJob:
    """Reads a task of pictures. Raises Refusal."""
    inputs, asked = _object(body, "input"), _object(body, "parameters")
    width, _, height = (given.text(asked, "size") or "1024*1024").partition("*")
    if not (width.isdigit() and height.isdigit() and 64 <= int(width) <= 4096 and 64 <= int(height) <= 4096):
        raise Refusal(Reason.PARAMETER_INVALID, "The size is not match the allowed size.", "size")
    n = given.whole(asked, "n", 4, 1, model.n_max)
    references = given.urls(inputs, "images", model.reference_images)
    return ImageJob(given.words(inputs), int(width), int(height), n, given.seed(asked), references, "png", as_url=True)


def created_view(task: Task, request_id: str) -> dict[str, Any]:
    """The answer to a task that was taken on."""
    return {"output": {"task_id": task.id, "task_status": "PENDING"}, "request_id": request_id}


def unknown_view(task_id: str, request_id: str) -> dict[str, Any]:
    """A task that nobody knows."""
    return {"output": {"task_id": task_id, "task_status": "UNKNOWN"}, "request_id": request_id}


def task_view(task: Task, link: Any, request_id: str) -> dict[str, Any]:
    """The task as GET answers it; `link(name)` gives the public URL of a file of the studio."""
    if task.status == jobs.EXPIRED:
        return unknown_view(task.id, request_id)
    output: dict[str, Any] = {
        "task_id": task.id,
        "task_status": _STATES[task.status],
        "submit_time": local(task.created_at),
    }
    view: dict[str, Any] = {"request_id": request_id, "output": output}
    if task.status not in jobs.ACTIVE:
        output["end_time"] = local(task.updated_at)
    if task.error is not None:
        output |= {"code": task.error.code, "message": task.error.message}
    if task.status == jobs.SUCCEEDED and task.pictures is None:
        output |= {"video_url": link(task.files["video"]), "orig_prompt": task.job.prompt}
        height = int(task.job.resolution.removesuffix("p"))
        view["usage"] = {"duration": task.job.duration_s, "video_count": 1, "SR": height, "ratio": task.job.ratio}
    elif task.status == jobs.SUCCEEDED:
        output["results"] = [{"orig_prompt": task.job.prompt, "url": link(name)} for name in task.files.values()]
        view["usage"] = {"image_count": len(task.files)}
    return view


def list_view(tasks: list[Task], page: int, size: int, request_id: str) -> dict[str, Any]:
    """One page of tasks, newest first: what they are, not what they were asked."""
    shown = tasks[(page - 1) * size : page * size]
    data = [
        {
            "task_id": task.id,
            "model_name": task.model,
            "status": _STATES[task.status],
            "gmt_create": int(task.created_at * 1000),
            "region": "cn-beijing",
        }
        for task in shown
    ]
    pages = {"total_page": -(-len(tasks) // size), "page_no": page, "page_size": size}
    return {"request_id": request_id, "data": data, "total": len(tasks), **pages}


def local(seconds: float) -> str:
    """A time as tasks tell it: to the millisecond, without its zone."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name) or {}
    if not isinstance(value, Mapping):
        raise Refusal(Reason.PARAMETER_INVALID, "must be an object", name)
    return value
