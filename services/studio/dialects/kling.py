"""The Kling dialect: video tasks from words, frames or several pictures, base path `/v1`.

Codes are numbers. The caller's `external_task_id` is unique in an account, and a task can be asked for by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.studio.domain import jobs
from services.studio.domain.accounts import Model
from services.studio.domain.jobs import Task, VideoJob
from services.studio.domain.prices import RATIOS
from services.studio.domain.refusals import Reason, Refusal

BASE = "/v1"
MODEL = "model_name"
ROUTES = ("/videos/text2video", "/videos/image2video", "/videos/multi-image2video")

# reason -> (HTTP status, code)
CODES: dict[Reason, tuple[int, int]] = {
    Reason.UNAUTHENTICATED: (401, 1000),
    Reason.MODEL_UNKNOWN: (404, 1203),
    Reason.PARAMETER_MISSING: (400, 1201),
    Reason.PARAMETER_INVALID: (400, 1201),
    Reason.BODY_INVALID: (400, 1200),
    Reason.MATERIAL_UNREADABLE: (400, 1201),
    Reason.MATERIAL_UNREACHABLE: (400, 1201),
    Reason.CONTENT_INPUT: (400, 1301),
    Reason.CONTENT_OUTPUT: (400, 1301),
    Reason.PERSON_INPUT: (400, 1301),
    Reason.PERSON_OUTPUT: (400, 1301),
    Reason.CONCURRENCY: (429, 1303),
    Reason.TASK_UNKNOWN: (404, 1203),
    Reason.TASK_RUNNING: (400, 1201),
    Reason.KEY_IN_USE: (409, 1201),
    Reason.KEY_REUSED: (400, 1201),
    Reason.ROUTE_UNKNOWN: (404, 1202),
    Reason.INTERNAL: (500, 5000),
}
MESSAGES = {
    Reason.UNAUTHENTICATED: "Authentication failed",
    Reason.CONTENT_INPUT: "Failure to pass the risk control system",
    Reason.CONTENT_OUTPUT: "Failure to pass the risk control system",
    Reason.PERSON_INPUT: "Failure to pass the risk control system",
    Reason.PERSON_OUTPUT: "Failure to pass the risk control system",
    Reason.CONCURRENCY: "parallel task over resource pack limit",
    Reason.INTERNAL: "Server internal error",
}
HEADERS: dict[Reason, dict[str, str]] = {}
STATUS_CODES = {400: 1201, 401: 1000, 403: 1103, 404: 1203, 429: 1302, 500: 5000, 503: 5001, 504: 5002}
_STATES = {
    jobs.QUEUED: "submitted",
    jobs.RUNNING: "processing",
    jobs.SUCCEEDED: "succeed",
    jobs.FAILED: "failed",
    jobs.EXPIRED: "failed",
    jobs.CANCELLED: "failed",
}
_RESOLUTIONS = {"std": "720p", "pro": "1080p"}


def envelope(code: int | str, message: str, request_id: str) -> dict[str, Any]:
    """The error body."""
    return {"code": code, "message": message, "request_id": request_id}


def refuse(refusal: Refusal, request_id: str) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of a refusal."""
    status, code = CODES[refusal.reason]
    return status, envelope(code, refusal.message or MESSAGES.get(refusal.reason, "invalid request"), request_id)


def scripted(status: int, code: str, message: str, request_id: str) -> dict[str, Any]:
    """The error body for a status that the script asked for."""
    number = int(code) if code.isdigit() else code or STATUS_CODES.get(status, 5000)
    return envelope(number, message or "The request failed.", request_id)


def model_unknown(model: str) -> Refusal:
    """The refusal of a model that the account does not have."""
    return Refusal(Reason.MODEL_UNKNOWN, f"model {model} is not found", MODEL)


def read_video(body: Mapping[str, Any], model: Model) -> VideoJob:
    """Reads a task of any of the routes for `model`. Raises Refusal where the model cannot do what is asked."""
    prompt = body.get("prompt") or ""
    images = [item.get("image") for item in body.get("image_list") or () if isinstance(item, Mapping)]
    frames = [body.get("image") or "", body.get("image_tail") or ""]
    if not isinstance(prompt, str) or not (prompt or frames[0]):
        raise Refusal(Reason.PARAMETER_MISSING, "prompt is required", "prompt")
    if not all(isinstance(picture, str) for picture in (*images, *frames)) or len(images) > model.reference_images:
        raise Refusal(Reason.PARAMETER_INVALID, "image_list is invalid", "image_list")
    seconds = str(body.get("duration") or "5")
    if not seconds.isdigit() or not model.duration_min_s <= int(seconds) <= model.duration_max_s:
        raise Refusal(Reason.PARAMETER_INVALID, "duration is invalid", "duration")
    ratio = body.get("aspect_ratio") or ("adaptive" if frames[0] else "16:9")
    if ratio not in (*RATIOS, "adaptive"):
        raise Refusal(Reason.PARAMETER_INVALID, "aspect_ratio is invalid", "aspect_ratio")
    resolution = _RESOLUTIONS.get(str(body.get("mode") or "std"), "")
    if resolution not in model.resolutions:
        raise Refusal(Reason.PARAMETER_INVALID, "mode is invalid", "mode")
    return VideoJob(
        prompt=prompt,
        duration_s=int(seconds),
        resolution=resolution,
        ratio=ratio,
        seed=-1,
        first_frame=_url(frames[0]),
        last_frame=_url(frames[1]),
        reference_images=tuple(_url(str(image)) for image in images),
        safety_identifier=str(body.get("external_task_id") or ""),
    )


def created_view(task: Task, request_id: str) -> dict[str, Any]:
    """The answer to a task that was taken on."""
    return _success(_head(task), request_id)


def task_view(task: Task, link: Any, request_id: str) -> dict[str, Any]:
    """The task as GET answers it; `link(name)` gives the public URL of a file of the studio."""
    view = _head(task)
    if task.error is not None:
        view["task_status_msg"] = task.error.message
    if task.status == jobs.SUCCEEDED:
        video = {"id": task.id, "url": link(task.files["video"]), "duration": f"{task.job.duration_s}.0"}
        view["task_result"] = {"videos": [video]}
    return _success(view, request_id)


def list_view(tasks: list[Task], request_id: str) -> dict[str, Any]:
    """Several tasks, without their results."""
    return _success([_head(task) for task in tasks], request_id)


def _success(data: Any, request_id: str) -> dict[str, Any]:
    return {"code": 0, "message": "SUCCEED", "request_id": request_id, "data": data}


def _head(task: Task) -> dict[str, Any]:
    return {
        "task_id": task.id,
        "task_status": _STATES[task.status],
        "task_info": {"external_task_id": task.job.safety_identifier or None},
        "created_at": int(task.created_at * 1000),
        "updated_at": int(task.updated_at * 1000),
    }


def _url(picture: str) -> str:
    """Pictures come as URLs or as bare base64."""
    return picture if not picture or picture.startswith(("http:", "https:", "data:")) else f"data:;base64,{picture}"
