"""The OpenAI dialect: errors, pictures, speech and the list of models, base path `/v1`.

Chat is in `openai_chat.py`, embeddings are in `openai_embeddings.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.studio.domain.accounts import Model
from services.studio.domain.jobs import ImageJob, SpeechJob
from services.studio.domain.refusals import Reason, Refusal

BASE = "/v1"
MODEL = "model"

# reason -> (HTTP status, code, type)
CODES: dict[Reason, tuple[int, str | None, str]] = {
    Reason.UNAUTHENTICATED: (401, "invalid_api_key", "invalid_request_error"),
    Reason.MODEL_UNKNOWN: (404, "model_not_found", "invalid_request_error"),
    Reason.PARAMETER_MISSING: (400, "missing_required_parameter", "invalid_request_error"),
    Reason.PARAMETER_INVALID: (400, "invalid_value", "invalid_request_error"),
    Reason.BODY_INVALID: (400, None, "invalid_request_error"),
    Reason.MATERIAL_UNREADABLE: (400, "invalid_image_file", "image_generation_user_error"),
    Reason.MATERIAL_UNREACHABLE: (400, "invalid_image_url", "invalid_request_error"),
    Reason.CONTENT_INPUT: (400, "moderation_blocked", "image_generation_user_error"),
    Reason.CONTENT_OUTPUT: (400, "moderation_blocked", "image_generation_user_error"),
    Reason.PERSON_INPUT: (400, "moderation_blocked", "image_generation_user_error"),
    Reason.PERSON_OUTPUT: (400, "moderation_blocked", "image_generation_user_error"),
    Reason.CONCURRENCY: (429, "rate_limit_exceeded", "requests"),
    Reason.TASK_UNKNOWN: (404, "not_found", "invalid_request_error"),
    Reason.TASK_RUNNING: (409, "conflict", "invalid_request_error"),
    Reason.KEY_IN_USE: (409, "idempotency_key_in_use", "idempotency_error"),
    Reason.KEY_REUSED: (422, "idempotency_key_reused", "idempotency_error"),
    Reason.ROUTE_UNKNOWN: (404, "unknown_url", "invalid_request_error"),
    Reason.INTERNAL: (500, "server_error", "server_error"),
}
MESSAGES = {
    Reason.UNAUTHENTICATED: "Incorrect API key provided.",
    Reason.CONTENT_INPUT: "Your request was rejected by the safety system.",
    Reason.CONTENT_OUTPUT: "Your request was rejected by the safety system.",
    Reason.PERSON_INPUT: "Your request was rejected by the safety system.",
    Reason.PERSON_OUTPUT: "Your request was rejected by the safety system.",
    Reason.CONCURRENCY: "Rate limit reached on concurrent requests. Please try again in 1s.",
    Reason.INTERNAL: "The server had an error while processing your request.",
}
# Headers that go with a refusal.
HEADERS: dict[Reason, dict[str, str]] = {
    Reason.CONCURRENCY: {"Retry-After": "1", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s"}
}
STATUS_CODES = {
    400: ("invalid_value", "invalid_request_error"),
    401: ("invalid_api_key", "invalid_request_error"),
    403: ("unsupported_country_region_territory", "request_forbidden"),
    404: ("model_not_found", "invalid_request_error"),
    429: ("rate_limit_exceeded", "requests"),
    500: ("server_error", "server_error"),
    503: ("slow_down", "server_error"),
}
VOICES = ("alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse")


def envelope(code: str | None, message: str, param: str, kind: str) -> dict[str, Any]:
    """The error body."""
    return {"error": {"message": message, "type": kind, "param": param or None, "code": code}}


def refuse(refusal: Refusal, request_id: str) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of a refusal. The request id travels in a header, not in the body."""
    status, code, kind = CODES[refusal.reason]
    message = refusal.message or MESSAGES.get(refusal.reason, "Invalid request.")
    body = envelope(refusal.code or code, message, refusal.param, kind)
    if code == "moderation_blocked":
        late = refusal.reason in (Reason.CONTENT_OUTPUT, Reason.PERSON_OUTPUT)
        stage = "output" if late else "input"
        body["error"]["moderation_details"] = {"moderation_stage": stage, "categories": ["sexual"]}
    return status, body


def scripted(status: int, code: str, message: str, request_id: str) -> dict[str, Any]:
    """The error body for a status that the script asked for."""
    default, kind = STATUS_CODES.get(status, ("server_error", "server_error"))
    return envelope(code or default, message or "The request failed.", "", kind)


def model_unknown(model: str) -> Refusal:
    """The refusal of a model that the account does not have."""
    text = f"The model `{model}` does not exist or you do not have access to it."
    return Refusal(Reason.MODEL_UNKNOWN, text, "model")


def read_image(body: Mapping[str, Any], model: Model) -> ImageJob:
    """Reads an image request for `model`. Raises Refusal."""
    prompt = body.get("prompt")
    if not isinstance(prompt, str) or not prompt:
        raise Refusal(Reason.PARAMETER_MISSING, "Missing required parameter: 'prompt'.", "prompt")
    n = body.get("n", 1)
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= model.n_max:
        raise _invalid("n", f"expected a whole number from 1 to {model.n_max}")
    size = body.get("size") or "auto"
    if model.sizes and size not in (*model.sizes, "auto"):
        raise _invalid("size", f"supported values are {', '.join(model.sizes)} and auto")
    width, height = _pixels("1024x1024" if size == "auto" else size)
    encoding = body.get("output_format") or "png"
    if encoding not in ("png", "jpeg", "webp"):
        raise _invalid("output_format", "supported values are png, jpeg and webp")
    how = body.get("response_format") or "b64_json"
    if how not in ("url", "b64_json"):
        raise _invalid("response_format", "supported values are url and b64_json")
    seed = body.get("seed", -1)
    images = body.get("images") or body.get("image") or []
    references = tuple(images) if isinstance(images, list) else (images,)
    references = tuple(item.get("image_url", "") if isinstance(item, Mapping) else str(item) for item in references)
    if len(references) > model.reference_images:
        raise _invalid("image", f"at most {model.reference_images} images")
    return ImageJob(prompt, width, height, n, seed if isinstance(seed, int) else -1, references, encoding, how == "url")


def _pixels(size: Any) -> tuple[int, int]:
    width, _, height = str(size).partition("x")
    if width.isdigit() and height.isdigit() and 64 <= int(width) <= 4096 and 64 <= int(height) <= 4096:
        return int(width), int(height)
    raise _invalid("size", "expected WIDTHxHEIGHT with sides from 64 to 4096")


def image_view(created: int, job: ImageJob, data: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The answer to an image request."""
    prompt_tokens = max(1, len(job.prompt) // 4)
    image_tokens = len(data) * job.width * job.height // 1024
    return {
        "created": created,
        "data": list(data),
        "size": f"{job.width}x{job.height}",
        "output_format": job.encoding,
        "usage": {
            "input_tokens": prompt_tokens,
            "input_tokens_details": {"text_tokens": prompt_tokens, "image_tokens": 0},
            "output_tokens": image_tokens,
            "total_tokens": prompt_tokens + image_tokens,
        },
    }


def read_speech(body: Mapping[str, Any], model: Model) -> SpeechJob:
    """Reads a speech request for `model`. Raises Refusal."""
    text = body.get("input")
    if not isinstance(text, str) or not text.strip():
        raise Refusal(Reason.PARAMETER_MISSING, "Missing required parameter: 'input'.", "input")
    if len(text) > model.max_characters:
        raise Refusal(
            Reason.PARAMETER_INVALID, f"String should have at most {model.max_characters} characters.", "input"
        )
    voice = body.get("voice", "alloy")
    if voice not in VOICES:
        raise _invalid("voice", f"supported values are {', '.join(VOICES)}")
    rate = body.get("speed", 1.0)
    if not isinstance(rate, int | float) or not 0.25 <= rate <= 4:
        raise _invalid("speed", "expected a number from 0.25 to 4.0")
    encoding = body.get("response_format", "mp3")
    if encoding not in ("wav", "mp3"):
        raise _invalid("response_format", "supported values are wav and mp3")
    return SpeechJob(text, voice, float(rate), encoding)


def models_view(models: Iterable[Model], owner: str, created: int) -> dict[str, Any]:
    """The list of models."""
    return {"object": "list", "data": [model_view(model, owner, created) for model in models]}


def model_view(model: Model, owner: str, created: int) -> dict[str, Any]:
    """One model of the list."""
    return {"id": model.id, "object": "model", "created": created, "owned_by": owner}


def _invalid(param: str, hint: str) -> Refusal:
    return Refusal(Reason.PARAMETER_INVALID, f"Invalid value for '{param}': {hint}.", param)
