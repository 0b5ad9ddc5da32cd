"""What a synchronous call gave: an output in the public shape, a report for the records, or the pieces of a stream."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.provider_adapter.domain.outcomes import Made, Stored

ANSWERED_KINDS = frozenset({"chat", "embedding", "ocr"})
"""Kinds whose output is JSON, made by the part `call`, also as a job; those that make files, by the part `submit`."""


class Usage(Struct, frozen=True):
    """What a call used, in the units of prices; None is what the provider did not report. Inputs include cached ones,
    outputs include reasoning. `seconds` is the length of what was made."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    input_audio_tokens: int | None = None
    input_image_tokens: int | None = None
    output_audio_tokens: int | None = None
    output_image_tokens: int | None = None
    cache_write_long_tokens: int | None = None
    images: int | None = None
    characters: int | None = None
    pages: int | None = None
    seconds: float | None = None


class Report(Struct, frozen=True):
    """For the records. `reported_cost` is what the provider says that it charged; `finish_reason` is in OpenAI's words;
    `ignored_fields` are fields of the input that the dialect cannot say and that were left out."""

    usage: Usage = Usage()
    finish_reason: str = ""
    provider_request_id: str = ""
    ignored_fields: tuple[str, ...] = ()
    reported_cost: Money | None = None
    model: str = ""
    """Which the provider says it used; for traces."""


class Answered(Struct, frozen=True):
    """A call that ended well. `output` is a JSON object in UTF-8."""

    output: bytes
    report: Report
    unknown_fields: tuple[str, ...] = ()


class Invoked(Struct, frozen=True):
    """The same with its files stored, and the seconds until the answer began."""

    output: bytes
    report: Report
    artifacts: tuple[Stored, ...] = ()
    first_token_s: float = 0.0


class Piece(NamedTuple):
    """One `chat.completion.chunk` as JSON. `token`: it says something, so from here on no other supply may serve."""

    chunk: bytes
    token: bool


class StreamReader(Protocol):
    """Reads one provider's stream, fed with bytes as they come, cut anywhere.

    `ended`: the provider's own last event was seen. `failure`: the provider said in the stream that it failed; the
    pieces before it were given. After either nothing more is read. `unknown_fields` as in Answered.
    """

    ended: bool
    failure: Fault | None
    unknown_fields: tuple[str, ...]

    def feed(self, data: bytes) -> list[Piece]:
        """The pieces that these bytes complete."""
        ...

    def close(self) -> list[Piece]:
        """The pieces that the end of the bytes completes."""
        ...

    def report(self) -> Report:
        """What is known so far; complete once `ended`."""
        ...

    def unfinished(self) -> Fault:
        """Why the bytes ended before the last event, as far as they tell."""
        ...


class Watch(Struct, frozen=True):
    """Watchdogs in seconds: until the first token (or the answer), and between two tokens. None: the submission's."""

    first_token_s: float | None = None
    inter_token_s: float | None = None


def usage_of_made(made: Made) -> Usage:
    """The usage of a job that made files, from its provider's own words and from what was made."""
    said = made.usage
    seconds = said.get("seconds")
    return Usage(
        input_tokens=count(said, "input_tokens"),
        input_image_tokens=count(said, "input_tokens_details", "image_tokens"),
        output_tokens=count(said, "output_tokens"),
        output_image_tokens=count(said, "output_tokens_details", "image_tokens"),
        characters=count(said, "characters"),
        images=sum(media.family == "image" for media in made.media) or None,
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
    )


def count(usage: Mapping[str, Any] | None, *path: str) -> int | None:
    """A whole number under a path of names; None for anything else."""
    value: Any = usage
    for name in path:
        value = value.get(name) if isinstance(value, (dict, Mapping)) else None
    if type(value) is int or type(value) is float:
        return int(value) if value >= 0 else None
    return None


class Told(Struct):
    """What a stream reader has gathered for its report."""

    usage: Usage = Usage()
    finish_reason: str = ""
    provider_request_id: str = ""
    ignored_fields: tuple[str, ...] = ()
    reported_cost: Money | None = None
    model: str = ""

    def report(self) -> Report:
        """The report as it stands."""
        said = self.usage, self.finish_reason, self.provider_request_id
        return Report(*said, self.ignored_fields, self.reported_cost, self.model)
