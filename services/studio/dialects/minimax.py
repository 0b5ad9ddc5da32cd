"""The MiniMax dialect: video tasks of both interfaces, `/v1` and `/v2`, under the bare origin.

A refusal is an HTTP 200 with a code in `base_resp`. Nothing of the caller's is echoed. The sizes 512P, 768P, 1080P and
2K are drawn as 480p, 720p, 1080p and 1080p.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.studio.dialects import ark
from services.studio.domain import jobs
from services.studio.domain.accounts import Model
from services.studio.domain.jobs import Task, VideoJob
from services.studio.domain.refusals import Reason, Refusal

BASE = ""
MODEL = "model"
LENGTHS_S = (6, 10)
_INVALID, _SENSITIVE_IN, _SENSITIVE_OUT = 2013, 1026, 1027

# reason -> (HTTP status, code)
CODES: dict[Reason, tuple[int, int]] = {
    Reason.UNAUTHENTICATED: (200, 1004),
    Reason.MODEL_UNKNOWN: (200, 2061),
    Reason.PARAMETER_MISSING: (200, _INVALID),
    Reason.PARAMETER_INVALID: (200, _INVALID),
    Reason.BODY_INVALID: (400, _INVALID),
    Reason.MATERIAL_UNREADABLE: (200, _INVALID),
    Reason.MATERIAL_UNREACHABLE: (200, _INVALID),
    Reason.CONTENT_INPUT: (200, _SENSITIVE_IN),
    Reason.CONTENT_OUTPUT: (200, _SENSITIVE_OUT),
    Reason.PERSON_INPUT: (200, _SENSITIVE_IN),
    Reason.PERSON_OUTPUT: (200, _SENSITIVE_OUT),
    Reason.CONCURRENCY: (200, 1002),
    Reason.TASK_UNKNOWN: (200, _INVALID),
    Reason.TASK_RUNNING: (200, _INVALID),
    Reason.KEY_IN_USE: (409, _INVALID),
    Reason.KEY_REUSED: (200, _INVALID),
    Reason.ROUTE_UNKNOWN: (404, _INVALID),
    Reason.INTERNAL: (500, 1000),
}
MESSAGES = {
    Reason.UNAUTHENTICATED: "login fail: Please carry the API secret key in the 'Authorization' field",
    Reason.CONTENT_INPUT: "input new_sensitive",
    Reason.CONTENT_OUTPUT: "output new_sensitive",
    Reason.PERSON_INPUT: "input new_sensitive, the material contains a real person",
    Reason.PERSON_OUTPUT: "output new_sensitive, the clip contains a real person",
    Reason.CONCURRENCY: "rate limit",
    Reason.INTERNAL: "unknown error",
}
HEADERS: dict[Reason, dict[str, str]] = {}
STATUS_CODES = {400: _INVALID, 401: 1004, 402: 1008, 403: 2061, 429: 1002, 500: 1000, 503: 1000}
_FIRST_STATES = {
    jobs.QUEUED: "Queueing",
    jobs.RUNNING: "Processing",
    jobs.SUCCEEDED: "Success",
    jobs.FAILED: "Fail",
    jobs.EXPIRED: "Fail",
    jobs.CANCELLED: "Fail",
}
_FIRST_SIZES = {"512P": "480p", "768P": "720p", "1080P": "1080p"}
_SECOND_SIZES = {"768P": "720p", "2K": "1080p"}
_PIXELS = {"480p": (912, 512), "720p": (1366, 768), "1080p": (1920, 1080)}


def answer(code: int | str, message: str) -> dict[str, Any]:
    """What stands beside every answer of the first interface, and beside refusals of both."""
    return {"base_resp": {"status_code": code, "status_msg": message}}


def refuse(refusal: Refusal, request_id: str) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of a refusal."""
    status, code = CODES[refusal.reason]
    message = refusal.message or MESSAGES.get(refusal.reason, "invalid params")
    return status, {"task_id": "", **answer(code, message)}


def scripted(status: int, code: str, message: str, request_id: str) -> dict[str, Any]:
    """The error body for a status that the script asked for."""
    number = int(code) if code.isdigit() else code or STATUS_CODES.get(status, 1000)
    return answer(number, message or "the request failed")


def model_unknown(model: str) -> Refusal:
    """The refusal of a model that the account does not have."""
    return Refusal(Reason.MODEL_UNKNOWN, f"your current plan does not support model {model}", MODEL)


def read_video(body: Mapping[str, Any], model: Model) -> VideoJob:
    """Reads a task of either interface for `model`. Raises Refusal where the model cannot do what is asked."""
    return _second(body, model) if "content" in body else _first(body, model)


def _first(body: Mapping[str, Any], model: Model) -> VideoJob:
    prompt, first, last = (_text(body, name) for name in ("prompt", "first_frame_image", "last_frame_image"))
    if not prompt and not first:
        raise Refusal(Reason.PARAMETER_MISSING, "invalid params, prompt is required", "prompt")
    seconds = body.get("duration", LENGTHS_S[0])
    if seconds not in LENGTHS_S:
        raise Refusal(Reason.PARAMETER_INVALID, "invalid params, duration must be 6 or 10", "duration")
    resolution = _FIRST_SIZES.get(str(body.get("resolution", "768P")), "")
    if resolution not in model.resolutions:
        raise Refusal(Reason.PARAMETER_INVALID, "invalid params, resolution", "resolution")
    subjects = [item for item in body.get("subject_reference") or () if isinstance(item, Mapping)]
    images = [str(image) for item in subjects for image in item.get("image") or ()]
    if len(images) > model.reference_images:
        raise Refusal(Reason.PARAMETER_INVALID, "invalid params, subject_reference", "subject_reference")
    return VideoJob(
        prompt=prompt,
        duration_s=seconds,
        resolution=resolution,
        ratio="adaptive" if first else "16:9",
        seed=-1,
        first_frame=first,
        last_frame=last,
        reference_images=tuple(images),
        audio=False,
    )


def _second(body: Mapping[str, Any], model: Model) -> VideoJob:
    """The contents are those of Ark; sizes, and that there must be words, are MiniMax's own."""
    content = body["content"]
    texts = [item.get("text") for item in content if isinstance(item, Mapping)] if isinstance(content, list) else []
    if not any(isinstance(text, str) and text.strip() for text in texts):
        raise Refusal(Reason.PARAMETER_MISSING, "invalid params, content needs a text", "content")
    if body.get("resolution", "768P") not in _SECOND_SIZES:
        raise Refusal(Reason.PARAMETER_INVALID, "invalid params, resolution", "resolution")
    words_only = len(content) == 1
    if words_only and body.get("ratio", "adaptive") == "adaptive":
        raise Refusal(Reason.PARAMETER_INVALID, "invalid params, ratio is required for text to video", "ratio")
    resolution = _SECOND_SIZES[body.get("resolution", "768P")]
    return ark.read_video({**body, "resolution": resolution}, model)


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name) or ""
    if not isinstance(value, str):
        raise Refusal(Reason.PARAMETER_INVALID, f"invalid params, {name}", name)
    return value


def first_view(task: Task) -> dict[str, Any]:
    """The task as the first interface tells it: a state, and with success the id of a file."""
    done = task.status == jobs.SUCCEEDED
    width, height = _PIXELS[task.job.resolution] if done else (0, 0)
    view = {
        "task_id": task.id,
        "status": _FIRST_STATES[task.status],
        "file_id": task.id if done else "",
        "video_width": width,
        "video_height": height,
    }
    if task.error is None:
        return view | answer(0, "success")
    return view | answer(int(task.error.code) if task.error.code.isdigit() else 1000, task.error.message)


def file_view(task: Task, link: Any) -> dict[str, Any]:
    """The file of a finished task; `link(name)` gives the public URL of a file of the studio."""
    name = task.files["video"]
    file = {"file_id": task.id, "bytes": 0, "created_at": int(task.updated_at), "filename": name}
    return {"file": file | {"purpose": "video_generation", "download_url": link(name)}} | answer(0, "success")


def task_of(task: Task, link: Any) -> dict[str, Any]:
    """The task as the second interface tells it."""
    job = task.job
    sizes = {ours: theirs for theirs, ours in _SECOND_SIZES.items()}
    view: dict[str, Any] = {
        "id": task.id,
        "model": task.model,
        "status": task.status,
        "created_at": int(task.created_at),
        "updated_at": int(task.updated_at),
        "content": {},
        "resolution": sizes.get(job.resolution, job.resolution),
        "duration": job.duration_s,
        "usage": {},
        "ratio": job.ratio,
        "task_type": "generation",
        "modality": "video",
    }
    if task.error is not None:
        view["error"] = {"code": task.error.code, "message": task.error.message}
    if task.status == jobs.SUCCEEDED:
        view["content"] = {"url": link(task.files["video"])}
        view["usage"] = {
            "total_seconds": job.duration_s,
            "input_seconds": 0,
            "output_seconds": job.duration_s,
            "input_image_count": len(job.reference_images),
        }
    return view
