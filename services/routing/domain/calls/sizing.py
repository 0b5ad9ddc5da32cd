"""What a request weighs: its input without its words, the figures that it is quoted by, and the tokens it may take.

A call is decided and kept over a *digest* of its input: every long field (messages, texts, pictures) is replaced by its
figures, every short one stays. So no record holds a conversation, nothing long is copied from hop to hop, and what
selection needs to know of a request is all there.

Tokens are estimated from the bytes of the text, a token for four: about right for English, and not far off for Chinese,
whose characters have three. The estimate is what a window of tokens is reserved with; the usage corrects it (CAP-6).
A quote is a ceiling (COST-1), so it is asked for with the most that there can be: a token for each byte.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.routing.domain.calls.documents import weight_of
from services.routing.domain.catalog import Kind, Spec, Supply

BYTES_PER_TOKEN = 4
MESSAGE_TOKENS = 4
"""What a message costs beside its words."""
PICTURE_TOKENS = 1000
MEDIA_TOKENS_AT_MOST = 8192
"""Of a picture or a sound that is read."""
MARKS_AT_MOST = 8
"""Tokens that a message takes beside its words, at most."""
DEFAULT_OUTPUT_TOKENS = 4096
LONGEST_WORD = 64
LIMITS = ("context_tokens", "max_output_tokens")
"""Of a Supply's capabilities, what the facts of a request are bounded by."""
IN_TOKENS = frozenset({Kind.CHAT, Kind.EMBEDDING})
"""Kinds that take windows of tokens."""
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


def as_digest(kind: Kind, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The digest of an input that may be one already."""
    told = given.get("input" if kind is Kind.EMBEDDING else "messages")
    return given if isinstance(told, Mapping) else digest_of(kind, given)


def rest_of(digest: Mapping[str, Any], done: Sequence[Any]) -> Digest:
    """The digest of embeddings once these texts, each a text or its tokens, are done: what is left is not read again,
    or the time of a call of many batches would grow with their square."""
    figures = _texts(done)
    return {**digest, "input": {name: figure - figures[name] for name, figure in digest["input"].items()}}


def facts_to_quote(kind: Kind, digest: Mapping[str, Any], supply: Supply) -> dict[str, Any]:
    """What a price may depend on."""
    if kind is Kind.CHAT:
        return {
            **{name: digest[name] for name in ("service_tier", "reasoning_effort") if name in digest},
            **_sorts_at_most(digest, supply.capabilities.get("context_tokens")),
            "input_tokens": stepped(tokens_at_most(kind, digest, supply.capabilities.get("context_tokens"))),
            "max_output_tokens": max_output_tokens(digest, supply),
        }
    if kind is Kind.EMBEDDING:
        return {"input_tokens": stepped(tokens_at_most(kind, digest)), "max_output_tokens": 0}
    if kind is Kind.SPEECH:
        return {"characters": _figure(digest.get("text"), "characters")}
    if kind is Kind.OCR:
        return {"pages": 1, **({"task": digest["task"]} if "task" in digest else {})}
    facts: dict[str, Any] = {name: value for name, value in digest.items() if not isinstance(value, Mapping)}
    if kind is Kind.IMAGE:
        pictures = _figure(digest.get("reference_images"), "count")
        facts["reference_images"] = [True] * pictures
        facts["input_image_tokens"] = pictures * MEDIA_TOKENS_AT_MOST
        facts["input_tokens"] = stepped(_figure(digest.get("prompt"), "bytes") + pictures * MEDIA_TOKENS_AT_MOST)
    return facts


def facts_of_each(kind: Kind, asked: Sequence[tuple[Mapping[str, Any], Supply]]) -> list[dict[str, Any]]:
    """The same for many (digest, Supply); those of one digest and equal limits share one object."""
    known: dict[object, dict[str, Any]] = {}
    found = []
    for digest, supply in asked:
        key = (id(digest), *map(supply.capabilities.get, LIMITS))
        facts = known.get(key)
        if facts is None:
            facts = known[key] = facts_to_quote(kind, digest, supply)
        found.append(facts)
    return found


def _sorts_at_most(digest: Mapping[str, Any], context_tokens: int | None) -> dict[str, int]:
    """Sorts of tokens with prices of their own that this conversation cannot have more of. Pages are pictures too."""
    messages, asked = digest.get("messages"), digest.get("modalities")
    found = {
        "input_image_tokens": _figure(messages, "images") * MEDIA_TOKENS_AT_MOST
        + _in_documents(messages, context_tokens),
        "input_audio_tokens": _figure(messages, "sounds") * MEDIA_TOKENS_AT_MOST,
    }
    found |= {f"output_{name}_tokens": 0 for name in ("audio", "image") if not _figure(asked, name)}
    return found


def tokens_to_reserve(kind: Kind, digest: Mapping[str, Any], supply: Supply) -> int:
    """The most that a try may take of the windows of tokens; 0 for kinds without tokens."""
    return tokens_at_once(kind, digest, supply.capabilities)


def tokens_at_once(kind: Kind, digest: Mapping[str, Any], capabilities: Spec) -> int:
    """The same for whatever has these capabilities."""
    if kind is Kind.CHAT:
        return input_tokens(kind, digest) + _output_tokens(digest, capabilities)
    return input_tokens(kind, digest) if kind is Kind.EMBEDDING else 0


def input_tokens(kind: Kind, digest: Mapping[str, Any]) -> int:
    """An estimate; 0 for kinds without tokens."""
    if kind is Kind.CHAT:
        return sum(_figure(digest.get(name), "tokens") for name in ("messages", "tools", "response_format"))
    return _figure(digest.get("input"), "tokens") if kind is Kind.EMBEDDING else 0


def tokens_at_most(kind: Kind, digest: Mapping[str, Any], context_tokens: int | None = None) -> int:
    """No tokeniser makes more; 0 for kinds without tokens. Of documents, whose weight is a guess from their size, no
    more is read than `context_tokens`, what a model takes at all."""
    if kind is Kind.EMBEDDING:
        return _figure(digest.get("input"), "bytes")
    messages = digest.get("messages")
    media = _figure(messages, "images") + _figure(messages, "sounds") + _figure(messages, "clips")
    texts = sum(_figure(digest.get(name), "bytes") for name in ("messages", "tools", "functions", "response_format"))
    beside = MARKS_AT_MOST * _figure(messages, "count") + MEDIA_TOKENS_AT_MOST * media
    return texts + beside + _in_documents(messages, context_tokens)


def _in_documents(messages: object, context_tokens: int | None) -> int:
    found = _figure(messages, "file_tokens_at_most")
    return min(found, int(context_tokens)) if context_tokens else found


def max_output_tokens(digest: Mapping[str, Any], supply: Supply) -> int:
    """The most that may be made: as asked, as the Supply admits, or a usual figure; for every choice asked for."""
    return _output_tokens(digest, supply.capabilities)


def _output_tokens(digest: Mapping[str, Any], capabilities: Spec) -> int:
    asked = digest.get("max_completion_tokens", digest.get("max_tokens"))
    most = capabilities.get("max_output_tokens")
    each = int(asked or most or DEFAULT_OUTPUT_TOKENS)
    return each * max(1, int(digest.get("n") or 1))


def equal_length(kind: Kind, digest: Mapping[str, Any], supplies: Sequence[Supply]) -> Digest | None:
    """The digest of a conversation that says no longest answer, with the shortest of those that these Supplies may
    give: every one of them can write that much, so their prices can be compared. None where all are quoted for the
    same."""
    if kind is not Kind.CHAT or digest.get("max_completion_tokens", digest.get("max_tokens")):
        return None
    longest = {int(supply.capabilities.get("max_output_tokens") or DEFAULT_OUTPUT_TOKENS) for supply in supplies}
    return {**digest, "max_completion_tokens": min(longest)} if len(longest) > 1 else None


def tokens_in(text: str) -> int:
    """Of one text."""
    return -(-_bytes_of(text) // BYTES_PER_TOKEN)


def stepped(tokens: int) -> int:
    """Rounded up, so that requests of about one size are one question."""
    step = STEP
    while tokens > step * 16:
        step *= 2
    return -(-tokens // step) * step


def _figure(value: object, name: str) -> int:
    if value is None:
        return 0
    # A dictionary is what it nearly always is, and the only one of these that is told apart without a call.
    return int(value.get(name) or 0) if isinstance(value, (dict, Mapping)) else 0


def _messages(value: Any) -> dict[str, int]:
    characters = size = tokens = images = sounds = clips = 0
    files = [weight_of(part) for message in value for part in _files(message)]
    tokens += sum(file.expected for file in files)
    for message in value:
        tokens += MESSAGE_TOKENS
        for text, sort in _parts(message):
            characters += len(text)
            size += _bytes_of(text)
            tokens += tokens_in(text) + (PICTURE_TOKENS if sort in ("image_url", "video_url") else 0)
            images += sort == "image_url"
            sounds += sort == "input_audio"
            clips += sort == "video_url"
    figures = {"characters": characters, "tokens": tokens, "images": images, "count": len(value), "bytes": size}
    figures |= {name: count for name, count in (("sounds", sounds), ("clips", clips)) if count}
    if files:
        figures |= {"files": len(files), "file_tokens_at_most": sum(file.most for file in files)}
    return figures


def _parts(message: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """(text, sort of part)."""
    content = message.get("content")
    parts: list[tuple[str, str]] = []
    if isinstance(content, str):
        parts.append((content, "text"))
    elif isinstance(content, (list, tuple)):
        for part in content:
            if isinstance(part, Mapping):
                parts.append((str(part.get("text") or ""), str(part.get("type") or "text")))
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            parts.append((f"{function.get('name') or ''}{function.get('arguments') or ''}", "text"))
    return parts


def _files(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parts that are documents."""
    content = message.get("content")
    for part in content if isinstance(content, (list, tuple)) else ():
        if isinstance(part, Mapping) and part.get("type") == "file":
            yield part


def _structure(value: Any) -> dict[str, Any]:
    """Of tools and formats: how much there is to read."""
    text = repr(value)
    size = len(text)
    found: dict[str, Any] = {"characters": size, "tokens": -(-size // BYTES_PER_TOKEN), "bytes": _bytes_of(text)}
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
    size = sum(_bytes_of(text) if isinstance(text, str) else len(text) for text in texts)
    return {"characters": characters, "tokens": tokens, "count": len(texts), "bytes": size}


def _text(value: Any) -> dict[str, int]:
    return {"characters": len(value), "bytes": _bytes_of(value)}


def _modalities(value: Any) -> dict[str, int]:
    return {name: int(name in value) for name in ("audio", "image")}


def _bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _materials(value: Any) -> dict[str, int]:
    return {"count": len(value)}


def _picture(value: Any) -> dict[str, int]:
    inside = value.get("base64") if isinstance(value, Mapping) else None
    return {"bytes": len(inside) * 3 // 4} if isinstance(inside, str) else {}


_SUMMARIES: Mapping[Kind, Mapping[str, Any]] = {
    Kind.CHAT: {
        "messages": _messages,
        "tools": _structure,
        "functions": _structure,
        "response_format": _structure,
        "modalities": _modalities,
        "logit_bias": _structure,
        "stop": _structure,
    },
    Kind.EMBEDDING: {"input": _texts},
    Kind.IMAGE: {"prompt": _text, "reference_images": _materials},
    Kind.SPEECH: {"text": _text},
    Kind.OCR: {"image": _picture},
    Kind.VIDEO: {},
}
