"""Fault on the wire: `google.rpc.Status` over gRPC, `common.v1.Failure` as data. Total in both directions.

Laws of this file (ERR-2, ERR-3, ERR-4):
- the reason in ErrorInfo is the code; category, scope, retryable and the provider's words ride in its metadata;
- a status without our ErrorInfo comes from the transport: it gets a code by its canonical status, never by its text;
- a reason that the registry does not know survives as it is;
- whatever goes out is redacted here, as a last line of defence.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from libs.faults.fault import Fault, FieldError
from libs.faults.registry import CODES, Category, Scope
from libs.telemetry.redaction import redact

DOMAIN = "pointsman"
STATUS_DETAILS_KEY = "grpc-status-details-bin"
FRAME_BYTES = 3
"""What a field error takes beside its own bytes."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a receiver takes of a status. It travels as trailing metadata, and what exceeds the receiver's limit does
    not arrive as a fault at all: so texts are cut, and field errors left out and counted, beyond these sizes.

    `message` and `detail`: of the message and of another text, in characters; `errors`: of the field errors, in bytes.
    """

    message: int
    detail: int
    errors: int


OURS = Room(message=2000, detail=500, errors=24 * 1024)
"""Who takes 64 KiB, as every channel of libs/rpc."""
ANYBODYS = Room(message=200, detail=80, errors=3 * 1024)
ANYBODYS_BYTES = 7 * 1024
"""Who takes what gRPC takes by itself: 8 KiB, up to 16 KiB at random. A status is not alone in it."""

_OWN_KEYS = frozenset({"category", "scope", "retryable", "provider", "provider_code", "provider_message"})

# What a bare canonical status means when nobody of ours wrote it.
_TRANSPORT_CODES = {
    "CANCELLED": "cancelled",
    "UNKNOWN": "internal",
    "INVALID_ARGUMENT": "validation_failed",
    "DEADLINE_EXCEEDED": "deadline_exceeded",
    "NOT_FOUND": "not_found",
    "ALREADY_EXISTS": "already_exists",
    "PERMISSION_DENIED": "forbidden",
    "RESOURCE_EXHAUSTED": "transport_limit",
    "FAILED_PRECONDITION": "conflict",
    "ABORTED": "conflict",
    "OUT_OF_RANGE": "validation_failed",
    "UNIMPLEMENTED": "unimplemented",
    "INTERNAL": "internal",
    "UNAVAILABLE": "peer_unavailable",
    "DATA_LOSS": "internal",
    "UNAUTHENTICATED": "unauthenticated",
}


def grpc_status_of(fault: Fault) -> grpc.StatusCode:
    """The canonical status: the registry's, or by category for a code that this release does not know."""
    entry = CODES.get(fault.code)
    if entry is not None:
        return grpc.StatusCode[entry.grpc_status]
    return _STATUS_OF_CATEGORY[fault.category]


_STATUS_OF_CATEGORY = {
    Category.CONTENT: grpc.StatusCode.FAILED_PRECONDITION,
    Category.REQUEST: grpc.StatusCode.INVALID_ARGUMENT,
    Category.SUPPLY: grpc.StatusCode.UNAVAILABLE,
    Category.CAPACITY: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Category.UNKNOWN: grpc.StatusCode.ABORTED,
}


def _pack(message: Any) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed


def _short(text: str, limit: int) -> str:
    text = redact(text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def to_status(fault: Fault, *, brief: bool = False) -> status_pb2.Status:
    """The fault as `google.rpc.Status` with ErrorInfo, and RetryInfo and BadRequest where there is something to say.

    `brief`: where that is more than any client takes, it is cut to what one does.
    """
    status = _status(fault, OURS)
    return _status(fault, ANYBODYS) if brief and _line_bytes(status) > ANYBODYS_BYTES else status


def _line_bytes(status: status_pb2.Status) -> int:
    """What it takes at most on the line: its bytes as base64, and its message once more, with %XX for some bytes."""
    return int(status.ByteSize()) * 4 // 3 + len(quote(status.message))


def _status(fault: Fault, room: Room) -> status_pb2.Status:
    metadata = {key: _short(value, room.detail) for key, value in fault.metadata.items() if key not in _OWN_KEYS}
    metadata |= {
        "category": fault.category.value,
        "scope": fault.scope.value,
        "retryable": "true" if fault.retryable else "false",
    }
    for key in ("provider", "provider_code", "provider_message"):
        if getattr(fault, key):
            metadata[key] = _short(getattr(fault, key), room.detail)
    details = [_pack(error_details_pb2.ErrorInfo(reason=fault.code, domain=DOMAIN, metadata=metadata))]
    if fault.retry_after_ms is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(max(0, fault.retry_after_ms))
        details.append(_pack(retry))
    if fault.errors:
        details.append(_pack(_bad_request(fault.errors, room)))
    code = grpc_status_of(fault).value[0]
    return status_pb2.Status(code=code, message=_short(fault.message, room.message), details=details)


def _bad_request(errors: tuple[FieldError, ...], room: Room) -> error_details_pb2.BadRequest:
    bad = error_details_pb2.BadRequest()
    size = 0
    for number, error in enumerate(errors):
        violation = bad.field_violations.add(field=error.pointer, description=_short(error.reason, room.detail))
        size += violation.ByteSize() + FRAME_BYTES
        if size > room.errors:
            del bad.field_violations[-1]
            bad.field_violations.add(field="", description=f"and {len(errors) - number} more")
            break
    return bad


def from_status(status: status_pb2.Status) -> Fault:
    """The inverse of `to_status`; a status without our ErrorInfo is read as the transport's own."""
    info, retry_after_ms, errors = _details(status)
    if info is None or not info.reason:
        name = _name_of(status.code)
        return from_transport(name, status.message).replaced(errors=errors)
    metadata = dict(info.metadata)
    entry = CODES.get(info.reason)
    retryable = metadata.get("retryable")
    return Fault(
        info.reason,
        status.message,
        category=Category.of(metadata.get("category", entry.category.value if entry else "")),
        scope=Scope.of(metadata.get("scope", entry.scope.value if entry else "")),
        retryable=(entry.retryable if entry else False) if retryable is None else retryable == "true",
        retry_after_ms=retry_after_ms,
        provider=metadata.get("provider", ""),
        provider_code=metadata.get("provider_code", ""),
        provider_message=metadata.get("provider_message", ""),
        errors=errors,
        metadata={key: value for key, value in metadata.items() if key not in _OWN_KEYS},
    )


def _details(
    status: status_pb2.Status,
) -> tuple[error_details_pb2.ErrorInfo | None, int | None, tuple[FieldError, ...]]:
    info: error_details_pb2.ErrorInfo | None = None
    retry_after_ms: int | None = None
    errors: tuple[FieldError, ...] = ()
    for detail in status.details:
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            found = error_details_pb2.ErrorInfo()
            if detail.Unpack(found) and found.domain == DOMAIN:
                info = found
        elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            retry = error_details_pb2.RetryInfo()
            detail.Unpack(retry)
            retry_after_ms = retry.retry_delay.ToMilliseconds()
        elif detail.Is(error_details_pb2.BadRequest.DESCRIPTOR):
            bad = error_details_pb2.BadRequest()
            detail.Unpack(bad)
            errors = tuple(FieldError(item.field, item.description) for item in bad.field_violations)
    return info, retry_after_ms, errors


def _name_of(number: int) -> str:
    for code in grpc.StatusCode:
        if code.value[0] == number:
            return code.name
    return "UNKNOWN"


def from_transport(status_name: str, text: str = "") -> Fault:
    """A fault for a status that carries no ErrorInfo of ours. `text` goes to metadata: it is for logs, not for callers.

    RESOURCE_EXHAUSTED becomes `transport_limit`, which is not retryable: without a reason nobody can tell a message
    that is too large from a server that is too busy.
    """
    code = _TRANSPORT_CODES.get(status_name, "internal")
    metadata = {"transport_status": status_name}
    if text:
        metadata["transport_text"] = _short(text, OURS.detail)
    return Fault.of(code, metadata=metadata)


def from_rpc_error(error: grpc.RpcError) -> Fault:
    """The fault in a failed call. Works for `grpc.aio.AioRpcError` and for a synchronous stub's error alike.

    Keep the cause: `raise from_rpc_error(error) from error`.
    """
    code: grpc.StatusCode = error.code()  # every error of a finished call has it
    text = str(error.details() or "")
    trailing: Any = error.trailing_metadata() or ()
    for key, value in trailing:
        if key == STATUS_DETAILS_KEY:
            try:
                status = status_pb2.Status.FromString(value)
            except Exception:  # a foreign peer may put anything there: then the canonical status has to do
                break
            if status.code == code.value[0]:
                return from_status(status)
    return from_transport(code.name, text)
