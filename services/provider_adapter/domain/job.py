"""One request in Pointsman's own words, and the channel it goes over.

Inputs (all optional unless said):
- video: prompt, reference_images[], reference_videos[], reference_audios[], first_frame, last_frame, duration_s,
  resolution, ratio, audio (true or false), seed, real_person; or clips[], narration[] (null where a clip has none),
  subtitles[] (texts, one a clip, or {start_s, end_s, text}), real_person
- image: prompt (required), reference_images[], size, n, seed
- speech: text (required), voice, format, speed
- ocr: image (required, a material), task
- chat, embedding: as OpenAI's chat.completions and embeddings

A material is `{"url"}`, `{"artifact": sha256}` or `{"base64", "media_type"}`.
"""

import base64
import binascii
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from libs.faults.fault import Fault

MATERIAL_LISTS = {
    "reference_images": "image",
    "reference_videos": "video",
    "reference_audios": "audio",
    "clips": "video",
    "narration": "audio",
}
MATERIAL_SINGLES = {"first_frame": "image", "last_frame": "image", "image": "image"}
"""Field -> family of what it takes."""


class Timeouts(Struct, frozen=True):
    """Seconds for each phase."""

    connect_s: float = 5.0
    submit_s: float = 30.0
    poll_s: float = 10.0


class Endpoint(Struct, frozen=True):
    """How to reach one account: what ProviderService calls ChannelEndpoint.

    `reconcile_by` is what this server offers beyond its dialect's promise; empty = nothing.
    """

    channel_id: str
    adapter: str
    base_url: str
    secret_ref: str
    timeouts: Timeouts = Timeouts()
    reconcile_by: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of one material; or, where the provider fetches it from us, the link, and no bytes."""

    data: bytes
    media_type: str
    link: str = field(default="", repr=False)

    def url(self) -> str:
        """The link, or the bytes as a `data:` URL."""
        return self.link or self.data_url()

    def data_url(self) -> str:
        """The bytes as a `data:` URL."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode()}"


class Job(Struct, frozen=True):
    """One request. `contents` holds the bytes of the artifacts that the input names, by digest."""

    attempt_id: str
    client_token: str
    kind: str
    model: str
    input: Mapping[str, Any]
    contents: Mapping[str, Content] = {}

    def text(self, name: str) -> str:
        """A text field, "" when absent."""
        value = self.input.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise Fault.invalid((f"/input/{name}", "must be a text"))
        return value

    def required(self, name: str) -> str:
        """A text field that must not be empty."""
        value = self.text(name)
        if not value.strip():
            raise Fault.invalid((f"/input/{name}", "is required"))
        return value

    def whole(self, name: str) -> int | None:
        """A whole number, None when absent."""
        value = self.number(name)
        if value is None:
            return None
        if value != int(value):
            raise Fault.invalid((f"/input/{name}", "must be a whole number"))
        return int(value)

    def seconds_up(self, name: str) -> int | None:
        """Seconds rounded up to whole ones, None when absent: what comes is never shorter than what was asked."""
        value = self.number(name)
        return None if value is None else math.ceil(value)

    def seconds_of(self, name: str, lengths: Sequence[int]) -> int | None:
        """One of the only lengths that there are, None when absent. A longer one than asked was neither priced nor
        held: routing chooses it where the Supply declares them."""
        value = self.number(name)
        if value is None or value in lengths:
            return None if value is None else int(value)
        offered = ", ".join(map(str, lengths[:-1])) + f" or {lengths[-1]}"
        remedy = f"declare capabilities.duration_s.lengths: {list(lengths)} of the supply, and the next one is made"
        raise Fault.invalid((f"/input/{name}", f"must be {offered} for {self.model}, not {value:g}; {remedy}"))

    def flag(self, name: str) -> bool | None:
        """True or false, None when absent."""
        value = self.input.get(name)
        if value is not None and not isinstance(value, bool):
            raise Fault.invalid((f"/input/{name}", "must be true or false"))
        return value

    def must_lack(self, whose: str, *names: str) -> None:
        """Refuse fields that `whose` dialect has no words for: what was asked for is never passed over."""
        given = [name for name in names if self.input.get(name) not in (None, "", [], ())]
        if given:
            raise Fault.invalid(*((f"/input/{name}", f"has no word at {whose}: leave it out") for name in given))

    def number(self, name: str) -> float | None:
        """A number, None when absent."""
        value = self.input.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise Fault.invalid((f"/input/{name}", "must be a number"))
        return value

    def material(self, name: str) -> str:
        """One material as a URL (`data:` for bytes that we hold); "" when absent."""
        value = self.input.get(name)
        return "" if value is None else self._url(value, f"/input/{name}")

    def materials(self, name: str) -> tuple[str, ...]:
        """A list of materials as URLs, in order."""
        return tuple(self._url(value, f"/input/{name}/{index}") for index, value in enumerate(self.items(name)))

    def materials_or_gaps(self, name: str) -> tuple[str, ...]:
        """The same where null may stand for a place without a material; "" for such."""
        return tuple(
            "" if value is None else self._url(value, f"/input/{name}/{index}")
            for index, value in enumerate(self.items(name))
        )

    def items(self, name: str) -> Sequence[Any]:
        """A list, empty when absent."""
        values = self.input.get(name) or ()
        if not isinstance(values, list | tuple):
            raise Fault.invalid((f"/input/{name}", "must be a list"))
        return values

    def _url(self, value: Any, pointer: str) -> str:
        if not isinstance(value, Mapping):
            raise Fault.invalid((pointer, 'must be {"url"}, {"artifact"} or {"base64", "media_type"}'))
        if isinstance(value.get("url"), str) and value["url"]:
            return str(value["url"])
        if isinstance(value.get("artifact"), str):
            content = self.contents.get(value["artifact"])
            if content is None:
                raise Fault.of("material_unreachable", f"{pointer}: the artifact is not stored here")
            return content.url()
        if isinstance(value.get("base64"), str):
            try:
                data = base64.b64decode(value["base64"], validate=True)
            except (binascii.Error, ValueError):
                raise Fault.invalid((f"{pointer}/base64", "is not base64")) from None
            return Content(data, str(value.get("media_type") or "application/octet-stream")).data_url()
        raise Fault.invalid((pointer, 'must be {"url"}, {"artifact"} or {"base64", "media_type"}'))


@dataclass(frozen=True, slots=True)
class Place:
    """One material where it stands in an input: in field `name`, at `index` of it for a list."""

    name: str
    index: int | None
    value: Mapping[str, Any]

    @property
    def pointer(self) -> str:
        """As a JSON pointer into the request."""
        return f"/input/{self.name}" if self.index is None else f"/input/{self.name}/{self.index}"

    @property
    def family(self) -> str:
        """What the field takes."""
        return {**MATERIAL_LISTS, **MATERIAL_SINGLES}[self.name]

    def decoded(self) -> bytes:
        """The bytes of base64. Fault `validation_failed` when it is none."""
        try:
            return base64.b64decode(str(self.value.get("base64")), validate=True)
        except (binascii.Error, ValueError):
            raise Fault.invalid((f"{self.pointer}/base64", "is not base64")) from None


def material_places(given: Mapping[str, Any]) -> Iterator[Place]:
    """Every material of an input, in order. What is none is left to the adapters to refuse."""
    for name in MATERIAL_SINGLES:
        if isinstance(given.get(name), Mapping):
            yield Place(name, None, given[name])
    for name in MATERIAL_LISTS:
        items = given.get(name)
        for index, item in enumerate(items if isinstance(items, list | tuple) else ()):
            if isinstance(item, Mapping):
                yield Place(name, index, item)


def with_material(given: Mapping[str, Any], place: Place, value: Mapping[str, Any]) -> dict[str, Any]:
    """The input with another material at that place."""
    if place.index is None:
        return {**given, place.name: value}
    items = list(given[place.name])
    items[place.index] = value
    return {**given, place.name: items}


WORDS_OF_DIALECTS = frozenset(
    "assistant auto content developer file function image_url input_audio json_object json_schema messages none object"
    " prompt required string system text tool user".split()
)
"""What stands in every second input as a value and names nothing of its user."""


CHOICES = frozenset({"resolution", "ratio", "size", "task", "service_tier", "reasoning_effort", "verbosity"})
LONGEST_CHOICE = 16


def private_texts(given: Mapping[str, Any]) -> Iterator[str]:
    """Every text that a user wrote or signed into an input: what no message may repeat. Words that the dialect itself
    has are nobody's, nor is a short choice: a refusal may say that a `role` must be `user`, or that `720p` is none."""
    for name, value in given.items():
        if not (name in CHOICES and isinstance(value, str) and len(value) <= LONGEST_CHOICE):
            yield from _texts_in(value)


def _texts_in(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        if given not in WORDS_OF_DIALECTS:
            yield given
    elif isinstance(given, Mapping):
        for value in given.values():
            yield from _texts_in(value)
    elif isinstance(given, list | tuple):
        for value in given:
            yield from _texts_in(value)
