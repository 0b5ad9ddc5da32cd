"""The local-ocr dialect: what is written in a picture, as lines or as blocks of a layout, base path `/v1`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.studio.domain.accounts import Model
from services.studio.domain.refusals import Reason, Refusal
from services.studio.reading.pages import Block

BASE = "/v1"
MODEL = "model"
TASKS = ("recognize_text", "parse_layout")

# reason -> (HTTP status, code)
CODES: dict[Reason, tuple[int, str]] = {
    Reason.UNAUTHENTICATED: (401, "invalid_api_key"),
    Reason.MODEL_UNKNOWN: (404, "model_not_found"),
    Reason.PARAMETER_MISSING: (400, "missing_parameter"),
    Reason.PARAMETER_INVALID: (400, "invalid_value"),
    Reason.BODY_INVALID: (400, "invalid_json"),
    Reason.MATERIAL_UNREADABLE: (400, "invalid_image"),
    Reason.MATERIAL_UNREACHABLE: (400, "image_unreachable"),
    Reason.CONTENT_INPUT: (400, "content_rejected"),
    Reason.CONTENT_OUTPUT: (400, "content_rejected"),
    Reason.PERSON_INPUT: (400, "content_rejected"),
    Reason.PERSON_OUTPUT: (400, "content_rejected"),
    Reason.CONCURRENCY: (429, "rate_limit_exceeded"),
    Reason.TASK_UNKNOWN: (404, "not_found"),
    Reason.TASK_RUNNING: (409, "conflict"),
    Reason.KEY_IN_USE: (409, "idempotency_key_in_use"),
    Reason.KEY_REUSED: (422, "idempotency_key_reused"),
    Reason.ROUTE_UNKNOWN: (404, "route_unknown"),
    Reason.INTERNAL: (500, "internal_error"),
}
HEADERS: dict[Reason, dict[str, str]] = {Reason.CONCURRENCY: {"Retry-After": "1"}}
STATUS_CODES = {
    400: "invalid_value",
    401: "invalid_api_key",
    403: "forbidden",
    404: "model_not_found",
    429: "rate_limit_exceeded",
    500: "internal_error",
    503: "unavailable",
}


@dataclass(frozen=True, slots=True)
class OcrJob:
    """A picture to read, as a URL (`data:` or `http(s):`), by lines or as a layout."""

    url: str
    layout: bool


def envelope(code: str, message: str, param: str) -> dict[str, Any]:
    """The error body."""
    return {"error": {"code": code, "message": message, "param": param or None}}


def refuse(refusal: Refusal, request_id: str) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of a refusal. The request id travels in a header, not in the body."""
    status, code = CODES[refusal.reason]
    return status, envelope(refusal.code or code, refusal.message or code.replace("_", " "), refusal.param)


def scripted(status: int, code: str, message: str, request_id: str) -> dict[str, Any]:
    """The error body for a status that the script asked for."""
    return envelope(code or STATUS_CODES.get(status, "internal_error"), message or "The request failed.", "")


def model_unknown(model: str) -> Refusal:
    """The refusal of a model that the account does not have."""
    return Refusal(Reason.MODEL_UNKNOWN, f"there is no model {model}", MODEL)


def read_ocr(body: Mapping[str, Any], model: Model) -> OcrJob:
    """Reads a request `{model, image: {url | base64, media_type}, task}`. Raises Refusal."""
    image = body.get("image")
    if not isinstance(image, Mapping) or not (image.get("url") or image.get("base64")):
        raise Refusal(Reason.PARAMETER_MISSING, "image is an object with a url or base64", "image")
    task = body.get("task") or TASKS[0]
    if task not in TASKS:
        raise Refusal(Reason.PARAMETER_INVALID, f"task is one of {', '.join(TASKS)}", "task")
    given = image.get("base64") or image["url"]
    if not isinstance(given, str):
        raise Refusal(Reason.PARAMETER_INVALID, "url and base64 are strings", "image")
    if len(given) * 3 // 4 > model.max_bytes and not given.startswith("http"):
        raise Refusal(Reason.PARAMETER_INVALID, f"image has at most {model.max_bytes} bytes", "image")
    media_type = image.get("media_type") or "image/png"
    return OcrJob(f"data:{media_type};base64,{given}" if image.get("base64") else given, task == TASKS[1])


def ocr_view(pages: Sequence[Sequence[Block]]) -> dict[str, Any]:
    """The answer: the whole text, and every block with its box `[x, y, width, height]` in pixels of its page."""
    blocks = [
        {
            "text": block.text,
            "box": [block.box.left, block.box.top, block.box.width, block.box.height],
            "confidence": block.confidence,
            "kind": block.kind,
        }
        for page in pages
        for block in page
    ]
    text = "\n\n".join("\n".join(block.text for block in page) for page in pages)
    return {"text": text, "blocks": blocks, "pages": len(pages)}
