"""One request in Pointsman's own words, and the channel it goes over.

Inputs (all optional unless said):
- video: prompt, reference_images[], reference_videos[], reference_audios[], first_frame, last_frame, duration_s,
  resolution, ratio, seed, real_person
- image: prompt (required), reference_images[], size, n, seed
- speech: text (required), voice
- ocr: image (required, a material), task
- chat, embedding: as OpenAI's chat.completions and embeddings

A material is `{"url"}`, `{"artifact": sha256}` or `{"base64", "media_type"}`.
"""

import base64
import binascii
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from libs.faults.fault import Fault

MATERIAL_LISTS = ("reference_images", "reference_videos", "reference_audios")
MATERIAL_SINGLES = ("first_frame", "last_frame", "image")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds for each phase."""

    connect_s: float = 5.0
    submit_s: float = 30.0
    poll_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Endpoint:
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
    """The bytes of one material."""

    data: bytes
    media_type: str

    def data_url(self) -> str:
        """The bytes as a `data:` URL."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode()}"


@dataclass(frozen=True, slots=True)
class Job:
    """One request. `contents` holds the bytes of the artifacts that the input names, by digest."""

    attempt_id: str
    client_token: str
    kind: str
    model: str
    input: Mapping[str, Any]
    contents: Mapping[str, Content] = field(default_factory=dict)

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
        value = self._number(name)
        if value is None:
            return None
        if value != int(value):
            raise Fault.invalid((f"/input/{name}", "must be a whole number"))
        return int(value)

    def seconds_up(self, name: str) -> int | None:
        """Seconds rounded up to whole ones, None when absent: what comes is never shorter than what was asked."""
        value = self._number(name)
        return None if value is None else math.ceil(value)

    def _number(self, name: str) -> float | None:
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
        values = self.input.get(name) or ()
        if not isinstance(values, list | tuple):
            raise Fault.invalid((f"/input/{name}", "must be a list of materials"))
        return tuple(self._url(value, f"/input/{name}/{index}") for index, value in enumerate(values))

    def _url(self, value: Any, pointer: str) -> str:
        if not isinstance(value, Mapping):
            raise Fault.invalid((pointer, 'must be {"url"}, {"artifact"} or {"base64", "media_type"}'))
        if isinstance(value.get("url"), str) and value["url"]:
            return str(value["url"])
        if isinstance(value.get("artifact"), str):
            content = self.contents.get(value["artifact"])
            if content is None:
                raise Fault.of("material_unreachable", f"{pointer}: the artifact is not stored here")
            return content.data_url()
        if isinstance(value.get("base64"), str):
            try:
                data = base64.b64decode(value["base64"], validate=True)
            except (binascii.Error, ValueError):
                raise Fault.invalid((f"{pointer}/base64", "is not base64")) from None
            return Content(data, str(value.get("media_type") or "application/octet-stream")).data_url()
        raise Fault.invalid((pointer, 'must be {"url"}, {"artifact"} or {"base64", "media_type"}'))


def artifacts_of(given: Mapping[str, Any]) -> Iterator[str]:
    """The digests that an input names, each once, in order."""
    seen: set[str] = set()
    values = [given.get(name) for name in MATERIAL_SINGLES]
    for name in MATERIAL_LISTS:
        values.extend(given.get(name) or ())
    for value in values:
        digest = value.get("artifact") if isinstance(value, Mapping) else None
        if isinstance(digest, str) and digest not in seen:
            seen.add(digest)
            yield digest


def private_texts(given: Any) -> Iterator[str]:
    """Every text that a user wrote or signed into an input, deepest first: what no message may repeat."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, Mapping):
        for value in given.values():
            yield from private_texts(value)
    elif isinstance(given, list | tuple):
        for value in given:
            yield from private_texts(value)
