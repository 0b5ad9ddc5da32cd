"""What the routes of synchronous calls take, for the OpenAPI document."""

from typing import Any

from services.edge.domain.orders import BILLING_MODES, DEGRADATIONS, PRIORITIES
from services.edge.routes import input_schemas
from services.edge.routes.operations import Parameter

MODEL = {"type": "string", "description": "A Public Model of `GET /v1/models`."}
SECONDS = {"type": "number", "minimum": 0.1, "maximum": 3600}
OPTIONS: dict[str, Any] = {
    "type": "object",
    "description": "Pointsman's own options; OpenAI's client sends them as extra_body.",
    "additionalProperties": False,
    "properties": {
        "degradation": {"enum": list(DEGRADATIONS)},
        "billing_mode": {"enum": list(BILLING_MODES)},
        "timeout_s": {**SECONDS, "description": "The whole of it, every try included. Absent: what the policy says."},
        "deadline_s": {**SECONDS, "description": "The same; the shorter one holds."},
        "priority": {"enum": list(PRIORITIES), "description": "Taken for the sake of runs: a call never queues."},
        "session_id": {"type": "string", "maxLength": 200, "description": "The conversation, for records."},
        "parent_call_id": {"type": "string", "maxLength": 200, "description": "The call that led to it, for records."},
        "cache": {"type": "boolean", "description": "False: neither read nor fill the model's response cache."},
    },
}
HEADERS = (
    Parameter("Pointsman-Timeout", "`options.timeout_s`.", SECONDS, "header"),
    Parameter("Pointsman-Session", "`options.session_id`.", where="header"),
    Parameter("Pointsman-Parent", "`options.parent_call_id`.", where="header"),
    Parameter("Pointsman-Degradation", "`options.degradation`.", {"enum": list(DEGRADATIONS)}, "header"),
    Parameter("Pointsman-Cache", "no: `options.cache` false.", {"enum": ["yes", "no"]}, "header"),
)
CODES = (
    "malformed_request", "model_not_published", "payload_too_large", "unsupported_media_type", "validation_failed",
    "url_not_allowed", "content_rejected", "cost_limit_exceeded", "quota_full", "capacity_exhausted", "rate_limited",
    "retry_exhausted", "stream_interrupted", "stalled", "circuit_open_all", "no_sources", "supply_unavailable",
)  # fmt: skip


def _body(shape: dict[str, Any], more: dict[str, Any], without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of an input at the top, beside those of the door."""
    own = {name: schema for name, schema in shape["properties"].items() if name not in without}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["model", *(name for name in shape["required"] if name not in without)],
        "properties": {"model": MODEL, **own, **more, "options": OPTIONS},
    }


CHAT = _body(
    input_schemas.CHAT,
    {
        "stream_options": {
            "type": "object",
            "properties": {"include_usage": {"type": "boolean"}, "include_obfuscation": {"type": "boolean"}},
        }
    },
)
EMBEDDING = _body(input_schemas.EMBEDDING, {"encoding_format": {"enum": ["float", "base64"], "default": "float"}})
IMAGE = _body(
    input_schemas.IMAGE,
    {
        "response_format": {
            "enum": ["url", "b64_json"],
            "default": "url",
            "description": "url: an artifact, read with the same key.",
        },
        "user": {"type": "string", "description": "Taken, and told to nobody."},
        **{name: {"enum": ["auto"], "description": "The supply's own choice."} for name in ("quality", "background")},
        "moderation": {"enum": ["auto"], "description": "The supply's own."},
    },
)
SPEECH = _body(
    input_schemas.SPEECH,
    {
        "input": {"type": "string", "description": "What is to be said; the model says how long it may be."},
        "response_format": {**input_schemas.SPEECH["properties"]["format"], "default": "mp3"},
        "stream_format": {"enum": ["audio"], "description": "Sound comes as its bytes, whole."},
        "user": {"type": "string", "description": "Taken, and told to nobody."},
    },
    without=("text", "format"),
)
SPEECH["required"] = ["model", "input"]
OCR = _body(input_schemas.OCR, {})
INVOKE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["model", "input"],
    "properties": {"model": MODEL, "input": input_schemas.CALL_INPUT, "options": OPTIONS},
}
