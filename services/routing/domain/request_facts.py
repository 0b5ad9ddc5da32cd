"""What a request needs, read once from its input: the figures that capabilities and limits are compared with.

Laws of this file:
- reading never fails: `input_shape` has refused what has the wrong shape, and what is left out needs nothing;
- `normalised` is idempotent, so a request may be normalised where it enters and again where it is decided;
- a digest of an input (`domain.calls.sizing`), in which figures stand for the long fields, has the same needs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from services.routing.domain.catalog import Kind, Spec

REFERENCE_LISTS = ("reference_images", "reference_videos", "reference_audios")
MATERIAL_LISTS = (*REFERENCE_LISTS, "clips", "narration")
DEFAULT_DURATION_S = 5
CHARACTERS_PER_TOKEN = 4
"""A low estimate on purpose: a supply is not dropped on a guess that may be too high."""

VIDEO_FEATURES = ("first_frame", "last_frame", "audio", "seed", "subtitles")

SAMPLING = (
    "frequency_penalty", "logit_bias", "logprobs", "presence_penalty", "seed", "stop", "temperature", "top_logprobs",
    "top_p", "verbosity",
)  # fmt: skip
"""Fields of a chat that a model may lack, in the order of their names."""

UNSAID_OUTPUT = "max_completion_tokens"
"""The field for the most that may be made, where a chat names none."""

DEFAULT_BILLING_MODES: Mapping[Kind, str] = {
    Kind.VIDEO: "per_second",
    Kind.IMAGE: "per_image",
    Kind.CHAT: "per_token",
    Kind.EMBEDDING: "per_token",
    Kind.OCR: "per_page",
    Kind.SPEECH: "per_character",
}
"""What a request that names no billing mode means (COST-1)."""


class Facts(Struct, frozen=True):
    """The needs of one request. None or empty = not asked for."""

    kind: Kind
    counts: Mapping[str, int] = {}
    """Number of materials by input field; fields without any are left out."""
    choices: Mapping[str, str] = {}
    """Named choices: `resolution`, `ratio`, `size`, `voice`, `format`, `task`."""
    amounts: Mapping[str, float] = {}
    """Amounts: `duration_s`, `n`, `characters`, `batch`, `dimensions`, `context_tokens`, `output_tokens`."""
    features: tuple[str, ...] = ()
    """Abilities that are needed, in the order of their names."""
    parameters: tuple[str, ...] = ()
    """Sampling parameters that are set, in the order of their names (SYN-12)."""
    real_person: bool = False
    output_field: str = UNSAID_OUTPUT
    """The field that said the amount `output_tokens`."""


def billing_mode(kind: Kind, asked: str) -> str:
    """The mode that a request is priced in."""
    return asked or DEFAULT_BILLING_MODES[kind]


def normalised(kind: Kind, limits: Spec, given: Mapping[str, Any]) -> dict[str, Any]:
    """The same input with whole numbers as integers and the defaults that a price depends on said aloud.

    Video: `duration_s` is 5, moved into the model's limits; a film of `clips` is as long as they are, so none is said.
    Image: `n` is 1. OCR: `task` is `recognize_text`. Nothing else is invented: what a provider chooses by itself
    (resolution, ratio) stays its own choice and is priced at the rule's plain rate.
    """
    result = {name: _whole(value) for name, value in given.items() if value is not None}
    if kind is Kind.VIDEO and "duration_s" not in result and not result.get("clips"):
        bounds = limits.get("duration_s") or {}
        longest = bounds.get("max", DEFAULT_DURATION_S)
        result["duration_s"] = _whole(max(bounds.get("min", DEFAULT_DURATION_S), min(DEFAULT_DURATION_S, longest)))
    if kind is Kind.IMAGE:
        result.setdefault("n", 1)
    if kind is Kind.OCR:
        result.setdefault("task", "recognize_text")
    return result


def facts_of(kind: Kind, given: Mapping[str, Any]) -> Facts:
    """Read the needs of a checked input."""
    reader = _READERS[kind]
    return reader(given)


def _video(given: Mapping[str, Any]) -> Facts:
    return Facts(
        Kind.VIDEO,
        counts=_counts(given),
        choices=_named(given, "resolution", "ratio"),
        amounts=_amounts({"duration_s": given.get("duration_s")}),
        features=tuple(name for name in VIDEO_FEATURES if given.get(name) not in (None, [], ())),
        real_person=given.get("real_person") is True,
    )


def _image(given: Mapping[str, Any]) -> Facts:
    return Facts(
        Kind.IMAGE,
        counts=_counts(given),
        choices=_named(given, "size"),
        amounts=_amounts({"n": given.get("n", 1)}),
        features=("seed",) if given.get("seed") is not None else (),
    )


def _chat(given: Mapping[str, Any]) -> Facts:
    messages = given.get("messages") or ()
    features = set()
    if given.get("tools"):
        features.add("tools")
    if (given.get("response_format") or {}).get("type") == "json_schema":
        features.add("json_schema")
    if isinstance(messages, Mapping):
        characters, pictures = messages["characters"], messages["images"]
    else:
        parts = [part for message in messages for part in _parts(message)]
        characters = sum(len(str(part.get("text") or "")) for part in parts)
        pictures = sum(part.get("type") == "image_url" for part in parts)
    if pictures:
        features.add("vision")
    if given.get("reasoning_effort") is not None:
        features.add("reasoning")
    output = given.get("max_completion_tokens", given.get("max_tokens"))
    amounts = {"context_tokens": characters // CHARACTERS_PER_TOKEN or None, "output_tokens": output}
    set_ = tuple(name for name in SAMPLING if given.get(name) is not None)
    return Facts(
        Kind.CHAT,
        amounts=_amounts(amounts),
        features=tuple(sorted(features)),
        parameters=set_,
        output_field="max_tokens" if "max_completion_tokens" not in given and "max_tokens" in given else UNSAID_OUTPUT,
    )


def _parts(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    return [part for part in content or () if isinstance(part, Mapping)]


def _embedding(given: Mapping[str, Any]) -> Facts:
    texts = given.get("input")
    batch: int | None = len(texts) if isinstance(texts, Sequence) and not isinstance(texts, str) else 1
    if isinstance(texts, Mapping):
        batch = None  # of a digest: a call is split into as many as a Supply takes at once (SYN-11)
    return Facts(Kind.EMBEDDING, amounts=_amounts({"batch": batch, "dimensions": given.get("dimensions")}))


def _ocr(given: Mapping[str, Any]) -> Facts:
    picture = given.get("image") or {}
    return Facts(Kind.OCR, choices=_named(given, "task"), amounts=_amounts({"bytes": picture.get("bytes")}))


def _speech(given: Mapping[str, Any]) -> Facts:
    return Facts(
        Kind.SPEECH,
        choices=_named(given, "voice", "format"),
        amounts=_amounts({"characters": _size(given.get("text") or "")}),
        features=("speed",) if given.get("speed") not in (None, 1) else (),
    )


_READERS = {
    Kind.VIDEO: _video,
    Kind.IMAGE: _image,
    Kind.CHAT: _chat,
    Kind.EMBEDDING: _embedding,
    Kind.OCR: _ocr,
    Kind.SPEECH: _speech,
}


def _counts(given: Mapping[str, Any]) -> dict[str, int]:
    return {name: _size(given[name]) for name in MATERIAL_LISTS if given.get(name)}


def _size(value: Any) -> int:
    """Of a text or a list, or as the digest of one says."""
    if isinstance(value, Mapping):
        return int(value.get("count", value.get("characters", 0)))
    return len(value)


def _named(given: Mapping[str, Any], *names: str) -> dict[str, str]:
    return {name: str(given[name]) for name in names if given.get(name) is not None}


def _amounts(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def _whole(value: Any) -> Any:
    """JSON over a protobuf Struct knows only floats: 5.0 was 5."""
    kind = type(value)
    if kind is str or kind is int:
        return value
    if kind is dict:
        return {name: item if type(item) is str else _whole(item) for name, item in value.items()}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, (list, tuple)):
        return [_whole(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _whole(item) for name, item in value.items()}
    return value
