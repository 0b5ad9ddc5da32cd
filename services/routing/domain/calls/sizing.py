"""What a request weighs: its input without its words, the figures that it is quoted by, and the tokens it may take.

A call is decided and kept over a *digest* of its input: every long field (messages, texts, pictures) is replaced by its
figures, every short one stays. So no record holds a conversation, nothing long is copied from hop to hop, and what
selection needs to know of a request is all there.

Tokens are estimated from the bytes of the text, a token for four: about right for English, and not far off for Chinese,
whose characters have three. The estimate is what a window of tokens is reserved with; the usage corrects it (CAP-6).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from services.routing.domain.catalog import Kind, Supply

BYTES_PER_TOKEN = 4
MESSAGE_TOKENS = 4
"""What a message costs beside its words."""
PICTURE_TOKENS = 1000
DEFAULT_OUTPUT_TOKENS = 4096
LONGEST_WORD = 64
STEP = 64
"""Tokens of input are quoted in steps of this size at least, and of a sixteenth: a quote is a ceiling, and equal
questions need not be asked twice."""

Digest = dict[str, Any]


def digest_of(kind: Kind, given: Mapping[str, Any]) -> Digest:
    """The input without its words: `{"messages": {"characters": 12, "tokens": 7, "images": 0}, "temperature": 0}`."""
    summaries = _SUMMARIES[kind]
    found: Digest = {}
    for name, value in given.items():
        if value is None or value == []:
            continue
        if name in summaries:
            found[name] = summaries[name](value)
        elif isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= LONGEST_WORD):
            found[name] = value
    return found


def facts_to_quote(kind: Kind, digest: Mapping[str, Any], supply: Supply) -> dict[str, Any]:
    """What a price may depend on."""
    if kind is Kind.CHAT:
        return {
            "input_tokens": stepped(input_tokens(kind, digest)),
            "max_output_tokens": max_output_tokens(digest, supply),
        }
    if kind is Kind.EMBEDDING:
        return {"input_tokens": stepped(input_tokens(kind, digest)), "max_output_tokens": 0}
    if kind is Kind.SPEECH:
        return {"characters": _figure(digest.get("text"), "characters")}
    if kind is Kind.OCR:
        return {"pages": 1, **({"task": digest["task"]} if "task" in digest else {})}
    return {name: value for name, value in digest.items() if not isinstance(value, Mapping)}


def tokens_to_reserve(kind: Kind, digest: Mapping[str, Any], supply: Supply) -> int:
    """The most that a try may take of the windows of tokens; 0 for kinds without tokens."""
    if kind is Kind.CHAT:
        return input_tokens(kind, digest) + max_output_tokens(digest, supply)
    return input_tokens(kind, digest) if kind is Kind.EMBEDDING else 0


def input_tokens(kind: Kind, digest: Mapping[str, Any]) -> int:
    """An estimate; 0 for kinds without tokens."""
    if kind is Kind.CHAT:
        return sum(_figure(digest.get(name), "tokens") for name in ("messages", "tools", "response_format"))
    return _figure(digest.get("input"), "tokens") if kind is Kind.EMBEDDING else 0


def max_output_tokens(digest: Mapping[str, Any], supply: Supply) -> int:
    """The most that may be made: as asked, as the Supply admits, or a usual figure; for every choice asked for."""
    asked = digest.get("max_completion_tokens", digest.get("max_tokens"))
    most = supply.capabilities.get("max_output_tokens")
    each = int(asked or most or DEFAULT_OUTPUT_TOKENS)
    return each * max(1, int(digest.get("n") or 1))


def tokens_in(text: str) -> int:
    """Of one text."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def stepped(tokens: int) -> int:
    """Rounded up, so that requests of about one size are one question."""
    step = STEP
    while tokens > step * 16:
        step *= 2
    return -(-tokens // step) * step


def _figure(value: object, name: str) -> int:
    return int(value.get(name) or 0) if isinstance(value, Mapping) else 0


def _messages(value: Any) -> dict[str, int]:
    characters = tokens = images = 0
    for message in value:
        tokens += MESSAGE_TOKENS
        for text, picture in _parts(message):
            characters += len(text)
            tokens += tokens_in(text) + (PICTURE_TOKENS if picture else 0)
            images += picture
    return {"characters": characters, "tokens": tokens, "images": images, "count": len(value)}


def _parts(message: Mapping[str, Any]) -> Sequence[tuple[str, bool]]:
    """(text, whether it is a picture)."""
    content = message.get("content")
    parts: list[tuple[str, bool]] = []
    if isinstance(content, str):
        parts.append((content, False))
    elif isinstance(content, (list, tuple)):
        for part in content:
            if isinstance(part, Mapping):
                parts.append((str(part.get("text") or ""), part.get("type") == "image_url"))
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            parts.append((str(function.get("arguments") or ""), False))
    return parts


def _structure(value: Any) -> dict[str, Any]:
    """Of tools and formats: how much there is to read."""
    size = len(repr(value))
    found: dict[str, Any] = {"characters": size, "tokens": -(-size // BYTES_PER_TOKEN)}
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        found["type"] = value["type"][:LONGEST_WORD]
    if isinstance(value, (list, tuple)):
        found["count"] = len(value)
    return found


def _texts(value: Any) -> dict[str, int]:
    texts = [value] if isinstance(value, str) else list(value)
    if texts and not isinstance(texts[0], (str, list, tuple)):
        texts = [texts]  # one text, as the tokens that it is made of
    characters = sum(len(text) for text in texts)
    tokens = sum(tokens_in(text) if isinstance(text, str) else len(text) for text in texts)
    return {"characters": characters, "tokens": tokens, "count": len(texts)}


def _text(value: Any) -> dict[str, int]:
    return {"characters": len(value)}


def _materials(value: Any) -> dict[str, int]:
    return {"count": len(value)}


def _picture(value: Any) -> dict[str, int]:
    inside = value.get("base64") if isinstance(value, Mapping) else None
    return {"bytes": len(inside) * 3 // 4} if isinstance(inside, str) else {}


_SUMMARIES: Mapping[Kind, Mapping[str, Any]] = {
    Kind.CHAT: {"messages": _messages, "tools": _structure, "functions": _structure, "response_format": _structure},
    Kind.EMBEDDING: {"input": _texts},
    Kind.IMAGE: {"prompt": _text, "reference_images": _materials},
    Kind.SPEECH: {"text": _text},
    Kind.OCR: {"image": _picture},
    Kind.VIDEO: {},
}
