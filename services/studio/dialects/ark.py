"""The Ark dialect: video tasks (Seedance) and pictures (Seedream), base path `/api/v3`.

A task that failed is an HTTP 200 with `status: failed` and an `error`; only a refused request has an HTTP error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.studio.dialects import ark_film
from services.studio.domain.accounts import Model
from services.studio.domain.jobs import SUCCEEDED, ImageJob, Task, VideoJob
from services.studio.domain.prices import NOMINAL_FPS, RATIOS
from services.studio.domain.refusals import Reason, Refusal

BASE = "/api/v3"
MODEL = "model"

# reason -> (HTTP status, code, type)
CODES: dict[Reason, tuple[int, str, str]] = {
    Reason.UNAUTHENTICATED: (401, "AuthenticationError", "Unauthorized"),
    Reason.MODEL_UNKNOWN: (404, "InvalidEndpointOrModel.NotFound", "NotFound"),
    Reason.PARAMETER_MISSING: (400, "MissingParameter", "BadRequest"),
    Reason.PARAMETER_INVALID: (400, "InvalidParameter", "BadRequest"),
    Reason.BODY_INVALID: (400, "InvalidParameter", "BadRequest"),
    Reason.MATERIAL_UNREADABLE: (400, "InvalidParameter", "BadRequest"),
    Reason.MATERIAL_UNREACHABLE: (400, "InvalidImageURL.DownloadFailed", "BadRequest"),
    Reason.CONTENT_INPUT: (400, "InputTextSensitiveContentDetected", "BadRequest"),
    Reason.CONTENT_OUTPUT: (400, "OutputVideoSensitiveContentDetected", "BadRequest"),
    Reason.PERSON_INPUT: (400, "InputImageSensitiveContentDetected.PrivacyInformation", "BadRequest"),
    Reason.PERSON_OUTPUT: (400, "InputImageSensitiveContentDetected.PrivacyInformation", "BadRequest"),
    Reason.CONCURRENCY: (429, "QuotaExceeded", "TooManyRequests"),
    Reason.TASK_UNKNOWN: (404, "NotFound.id", "NotFound"),
    Reason.TASK_RUNNING: (409, "InvalidAction.RunningTaskDeletion", "Conflict"),
    Reason.KEY_IN_USE: (409, "IdempotencyKeyInUse", "Conflict"),
    Reason.KEY_REUSED: (400, "InvalidParameter", "BadRequest"),
    Reason.ROUTE_UNKNOWN: (404, "InvalidAction.NotFound", "NotFound"),
    Reason.INTERNAL: (500, "InternalServiceError", "InternalServerError"),
}
MESSAGES = {
    Reason.UNAUTHENTICATED: "The API key in the request is missing or invalid.",
    Reason.CONTENT_INPUT: "The request failed because the input text may contain sensitive information.",
    Reason.CONTENT_OUTPUT: "The request failed because the output video may contain sensitive information.",
    Reason.PERSON_INPUT: "The request failed because the input image may contain real person.",
    Reason.PERSON_OUTPUT: "The request failed because the input image may contain real person.",
    Reason.CONCURRENCY: "You have exceeded the maximum number of queued/running tasks for the model. "
    "Please try again later.",
    Reason.INTERNAL: "The service encountered an unexpected internal error.",
}

# Headers that go with a refusal; Ark says nothing of when to come back.
HEADERS: dict[Reason, dict[str, str]] = {}

# What a bare HTTP status means when a script gives no body.
STATUS_CODES = {
    400: ("InvalidParameter", "BadRequest"),
    401: ("AuthenticationError", "Unauthorized"),
    403: ("AccountOverdueError", "Forbidden"),
    404: ("InvalidEndpointOrModel.NotFound", "NotFound"),
    429: ("ServerOverloaded", "TooManyRequests"),
    500: ("InternalServiceError", "InternalServerError"),
}
STATUS_MESSAGES = {
    401: MESSAGES[Reason.UNAUTHENTICATED],
    403: "The request failed because your account has an overdue balance.",
    429: "The service is currently unable to handle additional requests due to server overload.",
    500: MESSAGES[Reason.INTERNAL],
}
_ROLES = {
    "image_url": ("first_frame", "last_frame", "reference_image"),
    "video_url": ("reference_video",),
    "audio_url": ("reference_audio",),
}
_SIZES = {"1K": (1024, 1024), "2K": (2048, 2048), "4K": (4096, 4096)}


def envelope(code: str, message: str, param: str, kind: str, request_id: str) -> dict[str, Any]:
    """The error body; the request id stands at the end of the message."""
    return {"error": {"code": code, "message": f"{message} Request id: {request_id}", "param": param, "type": kind}}


def refuse(refusal: Refusal, request_id: str) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of a refusal."""
    status, code, kind = CODES[refusal.reason]
    message = refusal.message or MESSAGES.get(refusal.reason, "The request is not valid.")
    return status, envelope(code, message, refusal.param, kind, request_id)


def scripted(status: int, code: str, message: str, request_id: str) -> dict[str, Any]:
    """The error body for a status that the script asked for."""
    default, kind = STATUS_CODES.get(status, ("InternalServiceError", "InternalServerError"))
    text = message or STATUS_MESSAGES.get(status, "The request failed.")
    return envelope(code or default, text, "", kind, request_id)


def model_unknown(model: str) -> Refusal:
    """The refusal of a model that the account does not have."""
    text = f"The model or endpoint {model} does not exist or you do not have access to it."
    return Refusal(Reason.MODEL_UNKNOWN, text, "model")


def read_video(body: Mapping[str, Any], model: Model) -> VideoJob:
    """Reads a video task for `model`. Raises Refusal where the model cannot do what is asked."""
    if model.clips:
        return ark_film.read(body, model)
    text, materials = _content(body)
    _check_materials(materials, model)
    if not text and not any(materials.values()):
        raise Refusal(Reason.PARAMETER_MISSING, "The required parameter `content` is missing.", "content")
    duration = body.get("duration", 5)
    if duration == -1:
        duration = max(model.duration_min_s, 5)
    if not _whole(duration) or not model.duration_min_s <= duration <= model.duration_max_s:
        raise _invalid("duration", model)
    resolution = body.get("resolution", "720p")
    if resolution not in model.resolutions:
        raise _invalid("resolution", model)
    ratio = body.get("ratio", "adaptive")
    if ratio not in (*RATIOS, "adaptive"):
        raise _invalid("ratio", model)
    seed = body.get("seed", -1)
    if not _whole(seed) or not -1 <= seed < 2**32:
        raise _invalid("seed", model)
    first, last = materials["first_frame"], materials["last_frame"]
    return VideoJob(
        prompt=text,
        duration_s=duration,
        resolution=resolution,
        ratio=ratio,
        seed=seed,
        first_frame=first[0] if first else "",
        last_frame=last[0] if last else "",
        reference_images=tuple(materials["reference_image"]),
        reference_videos=tuple(materials["reference_video"]),
        reference_audios=tuple(materials["reference_audio"]),
        audio=bool(body.get("generate_audio", True)),
        return_last_frame=bool(body.get("return_last_frame", False)),
        watermark=bool(body.get("watermark", False)),
        safety_identifier=str(body.get("safety_identifier") or ""),
        service_tier=str(body.get("service_tier") or "default"),
        expires_after_s=int(body.get("execution_expires_after") or 172_800),
    )


def _content(body: Mapping[str, Any]) -> tuple[str, dict[str, list[str]]]:
    content = body.get("content")
    if not isinstance(content, list) or not content:
        raise Refusal(Reason.PARAMETER_MISSING, "The required parameter `content` is missing.", "content")
    texts: list[str] = []
    materials: dict[str, list[str]] = {role: [] for roles in _ROLES.values() for role in roles}
    for index, item in enumerate(content):
        kind = item.get("type") if isinstance(item, Mapping) else None
        if kind == "text":
            texts.append(str(item.get("text") or ""))
            continue
        if kind not in _ROLES:
            raise Refusal(Reason.PARAMETER_INVALID, f"The parameter `content[{index}].type` is not valid.", "content")
        role = item.get("role") or _ROLES[kind][0]
        holder = item.get(kind)
        url = holder.get("url") if isinstance(holder, Mapping) else None
        if role not in _ROLES[kind] or not isinstance(url, str) or not url:
            raise Refusal(Reason.PARAMETER_INVALID, f"The parameter `content[{index}].{kind}` is not valid.", "content")
        materials[role].append(url)
    return "\n".join(texts), materials


def _check_materials(materials: Mapping[str, Sequence[str]], model: Model) -> None:
    allowed = {
        "first_frame": 1,
        "last_frame": int(model.last_frame),
        "reference_image": model.reference_images,
        "reference_video": model.reference_videos,
        "reference_audio": model.reference_audios,
    }
    for role, most in allowed.items():
        if len(materials[role]) > most:
            text = f"The parameter `content` specified in the request is not valid: model {model.id} takes "
            raise Refusal(Reason.PARAMETER_INVALID, f"{text}at most {most} of role {role}.", "content")
    frames = bool(materials["first_frame"] or materials["last_frame"])
    references = bool(materials["reference_image"] or materials["reference_video"])
    if frames and (references or materials["reference_audio"]):
        raise Refusal(
            Reason.PARAMETER_INVALID,
            "The parameter `content` specified in the request is not valid: first/last frame content cannot be mixed "
            "with reference media content.",
            "content",
        )
    if materials["last_frame"] and not materials["first_frame"]:
        raise Refusal(Reason.PARAMETER_INVALID, "A last frame needs a first frame.", "content")
    if materials["reference_audio"] and not references:
        raise Refusal(Reason.PARAMETER_INVALID, "Reference audio needs a reference image or video.", "content")


def task_view(task: Task, link: Any) -> dict[str, Any]:
    """The task as GET answers it; `link(name)` gives the public URL of a file of the studio."""
    job = task.job
    view: dict[str, Any] = {
        "id": task.id,
        "model": task.model,
        "status": task.status,
        "error": {"code": task.error.code, "message": task.error.message} if task.error else None,
        "created_at": int(task.created_at),
        "updated_at": int(task.updated_at),
        "seed": job.seed,
        "resolution": job.resolution,
        "ratio": job.ratio,
        "duration": job.film.duration_s if job.film else job.duration_s,
        "framespersecond": NOMINAL_FPS,
        "generate_audio": job.audio,
        "draft": False,
        "service_tier": job.service_tier,
        "execution_expires_after": job.expires_after_s,
    }
    if job.safety_identifier:
        view["safety_identifier"] = job.safety_identifier
    if task.status == SUCCEEDED:
        view["content"] = {f"{role}_url": link(name) for role, name in task.files.items()}
        view["usage"] = dict(task.usage)
    return view


def read_image(body: Mapping[str, Any], model: Model) -> ImageJob:
    """Reads a Seedream request for `model`. Raises Refusal."""
    prompt = body.get("prompt")
    if not isinstance(prompt, str) or not prompt:
        raise Refusal(Reason.PARAMETER_MISSING, "The required parameter `prompt` is missing.", "prompt")
    images = body.get("image") or []
    references = tuple(images) if isinstance(images, list) else (str(images),)
    if len(references) > model.reference_images:
        raise _invalid("image", model)
    width, height = image_size(body.get("size", "2K"), model)
    n = 1
    if body.get("sequential_image_generation", "disabled") == "auto":
        options = body.get("sequential_image_generation_options") or {}
        n = options.get("max_images", model.n_max)
        if not _whole(n) or not 1 <= n + len(references) <= max(model.n_max, 1):
            raise _invalid("sequential_image_generation_options.max_images", model)
    how = body.get("response_format", "url")
    if how not in ("url", "b64_json"):
        raise _invalid("response_format", model)
    encoding = body.get("output_format", "jpeg")
    if encoding not in ("png", "jpeg"):
        raise _invalid("output_format", model)
    seed = body.get("seed", -1)
    if not _whole(seed):
        raise _invalid("seed", model)
    return ImageJob(prompt, width, height, n, seed, references, encoding, as_url=how == "url")


def image_size(size: Any, model: Model) -> tuple[int, int]:
    """Pixels of a Seedream size: "1K", "2K", "4K" or WxH of at most 4096 a side. Raises Refusal."""
    if size in _SIZES:
        return _SIZES[size]
    width, _, height = str(size).partition("x")
    if model.sizes and size not in model.sizes:
        raise _invalid("size", model)
    if width.isdigit() and height.isdigit() and 64 <= int(width) <= 4096 and 64 <= int(height) <= 4096:
        return int(width), int(height)
    raise _invalid("size", model)


def image_view(model: str, created: int, job: ImageJob, data: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The answer to a Seedream request. An item of `data` is a picture or `{"error": {code, message}}`."""
    made = sum("error" not in item for item in data)
    tokens = made * job.width * job.height // 256
    usage = {"generated_images": made, "output_tokens": tokens, "total_tokens": tokens}
    return {"model": model, "created": created, "data": list(data), "usage": usage}


def _invalid(param: str, model: Model) -> Refusal:
    text = f"The parameter `{param}` specified in the request is not valid for model {model.id}."
    return Refusal(Reason.PARAMETER_INVALID, text, param)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
