"""What the OpenAI routes take, read into orders (OAI-1).

The fields that a kind of work has stand in the input and go on to routing, which judges them by the kind and refuses
what it does not know. Here are read those that concern the door alone, and refused, with the reason, those that OpenAI
has and that would be ignored.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from services.edge.domain.calls import CallOrder, Fields, Renamed, order, own, read_options
from services.edge.domain.json_values import Reader

TOP: Renamed = {}
"""In these bodies the fields of the input stand at the top, under their own names."""
SPEECH: Renamed = {"text": "input", "format": "response_format"}
WHOLE = "must be false: this answer comes whole; POST /v1/chat/completions streams"
IMAGE_FORMATS = ("url", "b64_json")
VECTOR_FORMATS = ("float", "base64")
SPEECH_FORMAT = "mp3"
"""OpenAI's, where none is named."""
SUPPLYS_OWN = "is not served: it is the supply's own choice"
NOT_SERVED: Mapping[str, Mapping[str, str]] = {
    "image": {
        "quality": SUPPLYS_OWN,
        "style": SUPPLYS_OWN,
        "background": SUPPLYS_OWN,
        "moderation": SUPPLYS_OWN,
        "output_format": f"{SUPPLYS_OWN}; the artifact tells its media type",
        "output_compression": SUPPLYS_OWN,
        "partial_images": "is not served: pictures come whole",
    },
    "speech": {
        "instructions": f"{SUPPLYS_OWN}; `voice` and `speed` are served",
        "stream_format": "must be audio: speech comes whole",
    },
}
DONE_ANYWAY: Mapping[str, Mapping[str, bytes]] = {
    "image": {"quality": b'"auto"', "background": b'"auto"', "moderation": b'"auto"', "size": b'"auto"'},
    "speech": {"stream_format": b'"audio"'},
}
"""Words of OpenAI's, as JSON, that ask for what is done without them: the supply's own choice, sound as its bytes."""


class Chat(Struct, frozen=True):
    """A completion as asked for."""

    order: CallOrder
    stream: bool
    include_usage: bool


def read_chat(fields: Fields, headers: Mapping[str, str]) -> Chat:
    """A body of /v1/chat/completions. Fault validation_failed."""
    reader = Reader(own(fields, "model", "stream", "stream_options", "options"))
    stream = reader.flag("stream") or False
    include_usage = _stream_options(reader, stream) if reader.has("stream_options") else False
    options = read_options(reader, headers)
    return Chat(order(reader, "chat", fields, options, TOP), stream, include_usage)


def _stream_options(reader: Reader, stream: bool) -> bool:
    """Whether the usage is wanted at the end."""
    streaming = reader.nested("stream_options")
    include_usage = streaming.flag("include_usage") or False
    streaming.flag("include_obfuscation")  # padding against eavesdroppers, of which our streams have none to drop
    streaming.close()
    if not stream:
        reader.refuse("stream_options", "goes with stream: true alone")
    return include_usage


def read_embedding(fields: Fields, headers: Mapping[str, str]) -> tuple[CallOrder, str]:
    """A body of /v1/embeddings, and how vectors are to be spelt: `float` or `base64`."""
    reader = Reader(own(fields, "model", "encoding_format", "options"))
    spelling = reader.choice("encoding_format", VECTOR_FORMATS) or "float"
    options = read_options(reader, headers)
    return order(reader, "embedding", fields, options, TOP), spelling


def read_image(fields: Fields, headers: Mapping[str, str]) -> tuple[CallOrder, str]:
    """A body of /v1/images/generations, and how pictures are to be given: `url` or `b64_json`."""
    reader = _whole_reader("image", fields, "response_format")
    form = reader.choice("response_format", IMAGE_FORMATS) or "url"
    options = read_options(reader, headers)
    return order(reader, "image", fields, options, TOP), form


def read_speech(fields: Fields, headers: Mapping[str, str]) -> CallOrder:
    """A body of /v1/audio/speech; its `input` is the text, its `response_format` the format, mp3 where none is said."""
    reader = _whole_reader("speech", fields, "input", "format", "response_format")
    for name, called in SPEECH.items():
        if reader.has(name):
            reader.refuse(name, f"is called `{called}` here")
    text = reader.text("input", required=True, longest=1 << 20)
    form = reader.text("response_format") or SPEECH_FORMAT
    options = read_options(reader, headers)
    fields |= {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in (("text", text), ("format", form))}
    return order(reader, "speech", fields, options, SPEECH)


def _whole_reader(kind: str, fields: Fields, *names: str) -> Reader:
    """The fields of the door; `user` is taken and goes no further, since no provider of these kinds is told of it."""
    for name, word in DONE_ANYWAY[kind].items():
        if bytes(fields.get(name, b"")) == word:
            del fields[name]
    absent = NOT_SERVED[kind]
    reader = Reader(own(fields, "model", "options", "user", "stream", "text", *names, *absent))
    reader.text("user")
    if reader.flag("stream"):
        reader.refuse("stream", f"is not served: {'pictures come' if kind == 'image' else 'speech comes'} whole")
    for name, reason in absent.items():
        if reader.has(name):
            reader.refuse(name, reason)
    return reader


def read_ocr(fields: Fields, headers: Mapping[str, str]) -> CallOrder:
    """A body of /v1/ocr."""
    reader = Reader(own(fields, "model", "options"))
    options = read_options(reader, headers)
    return order(reader, "ocr", fields, options, TOP)


def read_invoke(fields: Fields, headers: Mapping[str, str]) -> CallOrder:
    """A body of /v1/invoke: the input stands in a field of its own, and the model says the kind."""
    given = fields.pop("input", None)
    reader = Reader(own(fields, "model", "options", *fields))
    options = read_options(reader, headers)
    return order(reader, "", _object(reader, given), options)


def _object(reader: Reader, given: msgspec.Raw | None) -> Fields:
    raw = b"null" if given is None else bytes(given)
    if raw == b"null":
        reader.refuse("input", "is required")
    elif not raw.startswith(b"{"):
        reader.refuse("input", "must be an object")
    else:
        fields: Fields = msgspec.json.decode(raw, type=Fields)
        if bytes(fields.get("stream", b"")) == b"true":
            reader.errors.append(("/input/stream", WHOLE))
        return fields
    return {}
