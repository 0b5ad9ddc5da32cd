"""A synchronous call: what is asked for, and what comes of it, whatever the path says it in.

Laws of this file:
- a body is taken apart at its top level alone: what goes on to routing stays the bytes that came, so that a long
  conversation is not decoded and encoded on its way;
- every field is read here, passed on to routing, or refused with a reason; none is dropped in silence.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from libs.faults.fault import Fault
from libs.kernel.surrogates import halves_in
from services.edge.domain.json_values import Reader, text_faults, too_deep, value_of
from services.edge.domain.orders import BILLING_MODES, DEGRADATIONS, PRIORITIES, Material, materials_in
from services.edge.domain.shapes import Amount, ArtifactRef

Fields = dict[str, msgspec.Raw]
"""The top level of a body: each value as the bytes that came."""

Renamed = Mapping[str, str]
_fields = msgspec.json.Decoder(Fields).decode

SYNCHRONOUS = ("chat", "embedding", "image", "speech", "ocr")
LONGEST_CALL_S = 3600.0
LONGEST_SESSION = 200
CACHE_WORDS = {"yes": True, "no": False}
BRACKETS_WITHOUT_DEPTH = 64
ESCAPED_ASCII = re.compile(rb"\\u00[0-7]")
"""Only so can a word, or a NUL, hide from a search in the bytes."""
MATERIAL_WORDS = (b'url"', b'artifact"', b'base64"', b'file_data"')
encode = msgspec.json.Encoder().encode


class CallOptions(Struct, frozen=True):
    """What is said beside the input. `timeout_s` None: what the policy says; `cache` None: what the model has."""

    degradation: str = ""
    billing_mode: str = ""
    timeout_s: float | None = None
    session_id: str = ""
    parent_call_id: str = ""
    cache: bool | None = None


class CallOrder(Struct, frozen=True):
    """A call as asked for. `kind` "" means the model's own; `input` is a JSON object.

    `materials` are files that go in, by their pointers into `/input`. `renamed`: see `place_of`.
    """

    model: str
    kind: str
    input: bytes
    options: CallOptions
    materials: tuple[Material, ...] = ()
    renamed: Renamed | None = None


class Tokens(Struct, frozen=True):
    """What the try that served it used; None = its provider did not say."""

    input: int | None = None
    cached_input: int | None = None
    output: int | None = None
    reasoning: int | None = None


class Receipt(Struct, frozen=True):
    """How a call ended well: who served it and what it cost. `supply` "" = the response cache."""

    call_id: str
    kind: str
    supply: str
    attempts: int
    cost: Amount | None
    cached: bool
    tokens: Tokens
    requested_profile: str = ""
    actual_profile: str = ""
    dropped_inputs: tuple[str, ...] = ()
    degraded: bool = False
    artifacts: tuple[ArtifactRef, ...] = ()


class Served(Struct, frozen=True):
    """The output, a JSON object, and the receipt."""

    output: bytes
    receipt: Receipt


def input_fields(raw: bytes) -> Fields:
    """The top level of an input that came as bytes. Fault malformed_request for what is no JSON object in UTF-8."""
    try:
        raw.decode()
        return _fields(raw)
    except RecursionError:
        raise too_deep() from None
    except msgspec.ValidationError:
        raise Fault.of("malformed_request", "the input must be a JSON object") from None
    except (UnicodeDecodeError, msgspec.MsgspecError) as error:
        if halves := halves_in(raw):
            raise Fault.invalid(*halves, code="malformed_request") from None
        raise Fault.of("malformed_request", f"the input is no JSON: {error}") from None


def own(fields: Fields, *names: str) -> dict[str, Any]:
    """Take the fields of those names out, decoded.

    Faults: validation_failed for a NUL character in them; malformed_request for nesting or numbers beyond reason.
    """
    taken = {name: value_of(fields.pop(name)) for name in names if name in fields}
    wrong = list(text_faults(taken, ""))
    if wrong:
        raise Fault.invalid(*wrong)
    return taken


def order(reader: Reader, kind: str, given: Fields, options: CallOptions, renamed: Renamed | None = None) -> CallOrder:
    """The order of the fields `given` as input. Fault validation_failed names everything that is wrong beside it."""
    model = reader.text("model", required=True, longest=200)
    raw = encode(given)
    materials = _carried(raw, reader, renamed)
    reader.finish()
    return CallOrder(model, kind, raw, options, materials, renamed)


def read_options(reader: Reader, headers: Mapping[str, str]) -> CallOptions:
    """`options` of the body; a header `Pointsman-…` stands in where the body says nothing."""
    said = _options(reader) if reader.has("options") else CallOptions()
    return _with_headers(said, headers, reader) if headers else said


def _options(reader: Reader) -> CallOptions:
    options = reader.nested("options")
    limits = [options.seconds(name, 0.1, LONGEST_CALL_S) for name in ("timeout_s", "deadline_s")]
    options.choice("priority", PRIORITIES)  # orders that are shared with runs may say it; a call never queues (SYN-1)
    if options.has("budget"):
        options.refuse("budget", "budgets are not served yet, and a limit that nobody keeps is not taken")
    said = CallOptions(
        degradation=options.choice("degradation", DEGRADATIONS),
        billing_mode=options.choice("billing_mode", BILLING_MODES),
        timeout_s=min((limit for limit in limits if limit is not None), default=None),
        session_id=options.text("session_id", longest=LONGEST_SESSION),
        parent_call_id=options.text("parent_call_id", longest=LONGEST_SESSION),
        cache=options.flag("cache"),
    )
    options.close()
    return said


def _with_headers(said: CallOptions, headers: Mapping[str, str], outer: Reader) -> CallOptions:
    words = Reader(dict(headers), "/header", outer.errors)
    cache = words.choice("pointsman-cache", tuple(CACHE_WORDS))
    degradation = words.choice("pointsman-degradation", DEGRADATIONS)
    return CallOptions(
        degradation=said.degradation or degradation,
        billing_mode=said.billing_mode,
        timeout_s=said.timeout_s or _header_seconds(words, "pointsman-timeout"),
        session_id=said.session_id or words.text("pointsman-session", longest=LONGEST_SESSION),
        parent_call_id=said.parent_call_id or words.text("pointsman-parent", longest=LONGEST_SESSION),
        cache=CACHE_WORDS.get(cache) if said.cache is None else said.cache,
    )


def _header_seconds(words: Reader, name: str) -> float | None:
    text = words.text(name)
    if not text:
        return None
    fits = re.fullmatch(r"\d{1,5}(\.\d{1,3})?", text, re.ASCII) and 0.1 <= float(text) <= LONGEST_CALL_S
    if not fits:
        words.refuse(name, f"must be a number of seconds between 0.1 and {LONGEST_CALL_S:g}")
        return None
    return float(text)


def _carried(raw: bytes, reader: Reader, renamed: Renamed | None) -> tuple[Material, ...]:
    """The materials of the input, which is decoded only where its bytes give cause to."""
    hiding = ESCAPED_ASCII.search(raw) is not None
    carrying = any(word in raw for word in MATERIAL_WORDS)
    deep = raw.count(b"[") + raw.count(b"{") > BRACKETS_WITHOUT_DEPTH
    if not (hiding or carrying or deep):
        return ()
    errors: list[tuple[str, str]] = list(text_faults(value := value_of(raw), "/input"))
    found = () if errors else tuple(materials_in(value, errors))
    reader.errors.extend((place_of(pointer, renamed), reason) for pointer, reason in errors)
    return found


def place_of(pointer: str, renamed: Renamed | None) -> str:
    """Where a body has what stands at `pointer`, for whoever knows the input alone: `/input/…`.

    None: there too. A mapping: the fields of the input stand at the top, some under other names.
    """
    if pointer == "/options/timeout":
        return "/options/timeout_s"
    if renamed is not None and pointer == "/input":
        return ""
    if renamed is None or not pointer.startswith("/input/"):
        return pointer
    name, slash, rest = pointer.removeprefix("/input/").partition("/")
    return f"/{renamed.get(name, name)}{slash}{rest}"
