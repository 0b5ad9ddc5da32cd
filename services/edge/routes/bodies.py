"""Bodies that come in: bounded while they stream, decoded, and refused with a reason."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request

from libs.faults.fault import Fault
from libs.kernel.surrogates import halves_in
from services.edge.domain.calls import Fields
from services.edge.domain.json_values import (
    Reader,
    check_depth,
    check_members,
    check_names,
    check_values,
    out_of_range,
    too_deep,
)
from services.edge.routes.gate import PLACE
from services.edge.routes.operations import JSON, YAML_TYPES

SMALL_BODY_BYTES = 64 * 1024
COMMAND_BODY_BYTES = 256 * 1024
"""Of what may carry an input: steering, redrives, decisions."""
"""Of a command: a few fields, and no media."""
TRUNCATED = "Input data was truncated"
_fields = msgspec.json.Decoder(Fields).decode


def media_type(request: Request) -> str:
    """The type of the body without its parameters, lower case; "" where none is said."""
    return str(request.headers.get("content-type", "")).partition(";")[0].strip().lower()


def check_type(request: Request, types: frozenset[str]) -> None:
    """Fault unsupported_media_type unless the body is of one of these types, or of none that is said."""
    said = media_type(request)
    if said and said not in types:
        raise Fault.of(
            "unsupported_media_type", f"{said[:100]} is not understood here; send {', '.join(sorted(types))}"
        )
    charset = _charset(request)
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise Fault.of("unsupported_media_type", f"charset {charset[:40]} is not understood here; send UTF-8")


def _charset(request: Request) -> str:
    for parameter in str(request.headers.get("content-type", "")).split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"').lower()
    return ""


async def chunks(request: Request, limit_bytes: int) -> AsyncIterator[bytes]:
    """The body as it arrives. Fault payload_too_large as soon as it is known to exceed the limit."""
    _check_announced(request, limit_bytes)
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit_bytes:
                raise _too_large(limit_bytes)
            yield chunk
    except ClientDisconnect as error:
        raise _cut_short() from error


def _check_announced(request: Request, limit_bytes: int) -> int:
    """The bytes that are announced, 0 where none are. Faults payload_too_large; unsupported_media_type for a body that
    is packed: what it holds nobody knows before it is unpacked, and a small one may hold very much."""
    coding = request.headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity"):
        told = f"Content-Encoding {coding[:40]} is not understood here; send the body as it is, unpacked"
        raise Fault.of("unsupported_media_type", told)
    said = request.headers.get("content-length", "")
    announced = int(said) if said.isdecimal() else 0
    if announced > limit_bytes:
        raise _too_large(limit_bytes)
    return announced


def _cut_short() -> Fault:
    return Fault.of("malformed_request", "the body ended before it was whole")


def _too_large(limit_bytes: int) -> Fault:
    message = f"the body has more than the {limit_bytes} bytes that are accepted"
    if limit_bytes <= COMMAND_BODY_BYTES:
        message += "; upload a file of that size first (POST /v1/artifacts) and name it by its sha256"
    return Fault.of("payload_too_large", message)


async def read_bytes(request: Request, limit_bytes: int) -> bytes:
    """The whole body, in memory: its bytes are the tenant's until the request has ended. Fault quota_exceeded where
    they find no room, as soon as they are announced or come."""
    place = request.scope.get(PLACE)
    announced = _check_announced(request, limit_bytes)
    if place is not None:
        place.weigh(announced)
    # As `chunks`, without two generators around what is one message for most bodies.
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await request.receive()
        if message["type"] != "http.request":
            raise _cut_short()
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > limit_bytes:
            raise _too_large(limit_bytes)
        if place is not None:
            place.weigh(size)
        more = message.get("more_body", False)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def read_json(request: Request, limit_bytes: int, *, optional: bool = False) -> Any:
    """The body as a JSON value; {} for an empty one where that is allowed. Its values are not judged yet."""
    if not optional:
        check_type(request, frozenset({JSON}))
    raw = await read_bytes(request, limit_bytes)
    if optional and not raw.strip():
        return {}  # many clients name a media type for a body that they do not send
    check_type(request, frozenset({JSON}))
    try:
        value = decode(raw)
    except msgspec.ValidationError as error:
        raise out_of_range(error) from None
    check_depth(value)
    check_members(raw, value)
    return value


async def read_object(request: Request, limit_bytes: int, *, optional: bool = False) -> Reader:
    """The body as an object to be read field by field, its values judged."""
    value = await read_json(request, limit_bytes, optional=optional)
    check_values(value)
    return Reader(value)


async def read_reason(request: Request) -> str:
    """What stands in the body of a command that takes a reason and nothing else; "" where there is none."""
    body = await read_object(request, SMALL_BODY_BYTES, optional=True)
    reason = body.text("reason")
    body.finish()
    return reason


async def read_fields(request: Request, limit_bytes: int) -> Fields:
    """The top level of the body, an object; its values are well-formed JSON, and none is judged yet."""
    check_type(request, frozenset({JSON}))
    raw = await read_bytes(request, limit_bytes)
    try:
        fields: Fields = decode(raw, _fields)
    except msgspec.ValidationError:
        raise Fault.invalid(("", "must be an object")) from None
    check_names(raw, fields)
    return fields


def decode(raw: bytes, decoder: Callable[[bytes], Any] = msgspec.json.decode) -> Any:
    """JSON from bytes. Fault malformed_request; msgspec.ValidationError for another type than the decoder's."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise Fault.of("malformed_request", f"the body is not UTF-8 at byte {error.start}") from None
    try:
        return decoder(raw)
    except RecursionError:
        raise too_deep() from None
    except msgspec.ValidationError:
        raise
    except msgspec.MsgspecError as error:
        if halves := halves_in(raw):
            raise Fault.invalid(*halves, code="malformed_request") from None
        raise Fault.of("malformed_request", f"the body is not JSON: {_place(raw, str(error))}") from None


def _place(raw: bytes, reason: str) -> str:
    """The decoder's reason with line and column instead of a byte."""
    _, found, rest = reason.partition("(byte ")
    if not found:
        return "it ends before it is whole" if reason == TRUNCATED else reason
    before = raw[: int(rest.rstrip(")"))]
    line = before.count(b"\n") + 1
    column = len(before) - (before.rfind(b"\n") + 1) + 1
    return f"{reason.partition(' (byte')[0]}: line {line}, column {column}"


async def read_text(request: Request, limit_bytes: int) -> str:
    """The body as text: a catalogue file."""
    check_type(request, YAML_TYPES)
    raw = await read_bytes(request, limit_bytes)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise Fault.of("malformed_request", f"the body is not UTF-8 at byte {error.start}") from None
    if "\x00" in text:
        raise Fault.invalid(("", "holds a NUL character"))
    if not text.strip():
        raise Fault.invalid(("", "is empty; send the catalogue file"))
    return text
