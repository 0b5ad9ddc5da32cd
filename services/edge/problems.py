"""Every answer that is no success: RFC 9457, `application/problem+json` (EDG-1..3).

`type` is a URN of the code; the `Link` header leads to the page of that code on this server. Clients branch on `code`.
Under the paths of OpenAI's interface the same body holds OpenAI's envelope as well, in its member `error` (OAI-1).
"""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from libs.faults.failures import sentence
from libs.faults.fault import Fault
from libs.faults.registry import CODES, Category, type_uri
from libs.telemetry.redaction import redact

MEDIA_TYPE = "application/problem+json"
CHALLENGE = 'Bearer realm="pointsman"'
LONGEST_DETAIL = 2000
# What a code of a later release is answered with.
_STATUS_OF_CATEGORY = {
    Category.CONTENT: 422,
    Category.REQUEST: 422,
    Category.SUPPLY: 503,
    Category.CAPACITY: 429,
    Category.UNKNOWN: 500,
}
# How long to wait after a 429 or a 503 of which nobody knows when it ends: known clients would otherwise come at once.
UNKNOWN_WAIT_S = 2
OPENAI_PATHS = (
    *("/v1/chat/", "/v1/embeddings", "/v1/images/", "/v1/audio/", "/v1/models"),
    *("/v1/responses", "/v1/completions", "/v1/moderations", "/v1/files", "/v1/batches"),
)
"""The latter are not served: a client that tries them reads so in its own words."""
OPENAI_TYPES = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    429: "rate_limit_error",
}
# Facts of `metadata` that callers may see beside the standard members.
_TOLD = ("reference", "gate", "param")


def status_of(fault: Fault) -> int:
    """The HTTP status."""
    entry = CODES.get(fault.code)
    return entry.http_status if entry else _STATUS_OF_CATEGORY[fault.category]


def problem(fault: Fault, request_id: str) -> dict[str, Any]:
    """The body as a JSON object."""
    entry = CODES.get(fault.code)
    body: dict[str, Any] = {
        "type": type_uri(fault.code),
        "title": entry.title if entry else fault.code.replace("_", " "),
        "status": status_of(fault),
        "detail": redact(sentence(fault))[:LONGEST_DETAIL],
        "code": fault.code,
        "request_id": request_id,
        "retryable": fault.retryable,
        "category": fault.category.value,
        "scope": fault.scope.value,
    }
    if fault.errors:
        body["errors"] = [{"pointer": error.pointer, "reason": redact(error.reason)} for error in fault.errors]
    body.update({name: fault.metadata[name] for name in _TOLD if name in fault.metadata})
    if fault.metadata.get("earliest", "").isdecimal():
        body["earliest"] = int(fault.metadata["earliest"])
    return body


def speaks_openai(path: str) -> bool:
    """Whether a path belongs to OpenAI's interface."""
    return path.startswith(OPENAI_PATHS)


def with_envelope(told: dict[str, Any]) -> dict[str, Any]:
    """The problem with OpenAI's envelope beside its own members."""
    status = told["status"]
    kind = OPENAI_TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")
    param = next((_parameter(item["pointer"]) for item in told.get("errors", ()) if item["pointer"][:1] == "/"), None)
    param = param or told.get("param")  # else what the provider named, in its own spelling
    error = {"message": told["detail"], "type": kind, "param": param, "code": told["code"]}
    return {**told, "error": error}


def _parameter(pointer: str) -> str:
    """`/messages/0/role` as OpenAI writes it: `messages[0].role`."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    return "".join(f"[{part}]" if part.isdecimal() else f".{part}" for part in parts).lstrip(".")


def headers_of(fault: Fault) -> dict[str, str]:
    """Headers that go with it: Retry-After in whole seconds (rounded up), the challenge, the methods, the size."""
    headers = {"content-type": MEDIA_TYPE, "cache-control": "no-store"}
    if fault.code in CODES:
        headers["link"] = f'</errors/{fault.code}>; rel="help"'
    if fault.retryable and fault.retry_after_ms is not None:
        headers["retry-after"] = str(max(1, math.ceil(fault.retry_after_ms / 1000)))
    elif status_of(fault) in (429, 503):
        headers["retry-after"] = str(UNKNOWN_WAIT_S)
    if fault.code == "unauthenticated":
        headers["www-authenticate"] = CHALLENGE
    if fault.code == "method_not_allowed" and "allow" in fault.metadata:
        headers["allow"] = fault.metadata["allow"]
    if fault.code == "range_not_satisfiable" and "size" in fault.metadata:
        headers["content-range"] = f"bytes */{fault.metadata['size']}"
    return headers


def answer(fault: Fault, request_id: str, path: str = "", call_id: str = "") -> tuple[int, Mapping[str, str], bytes]:
    """(status, headers, body). OpenAI's clients repeat by status; `x-should-retry` tells them what a repetition is.

    `call_id`: the request had become this call before it failed.
    """
    told, headers = problem(fault, request_id), headers_of(fault)
    if call_id:
        told["call_id"] = call_id
    if speaks_openai(path):
        told = with_envelope(told)
        headers["x-should-retry"] = "true" if fault.retryable else "false"
    return status_of(fault), headers, msgspec.json.encode(told)
