"""From what a call gave to OpenAI's answers (OAI-1): pure, and as few steps as the bytes allow.

The id of a completion is our call's, its model the Public Model that was asked for: neither tells which provider
served it. Fields that OpenAI does not have stay behind.
"""

import base64
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from sys import byteorder
from typing import Any

import msgspec

from services.edge.domain.calls import Fields, Receipt, Tokens, encode
from services.edge.domain.openai_shapes import Embedding, EmbeddingList, Image, ImageList, ImageTokens, TokenUsage

_fields = msgspec.json.Decoder(Fields).decode
_decode = msgspec.json.Decoder().decode
KEPT = ("service_tier", "system_fingerprint")
NOTHING = (b"", b"null", b"[]")
DONE = b"data: [DONE]\n\n"


def completion(output: bytes, model: str, receipt: Receipt, now_s: int) -> bytes:
    """A whole `chat.completion`."""
    found = _fields(output)
    body: dict[str, Any] = {
        "id": completion_id(receipt.call_id),
        "object": "chat.completion",
        "created": now_s,
        "model": model,
        "choices": found["choices"],
    }
    usage = usage_of(found.get("usage"), receipt.tokens)
    if usage:
        body["usage"] = usage
    body.update({name: found[name] for name in KEPT if name in found})
    return encode(body)


def completion_id(call_id: str) -> str:
    """The id of a completion: that of the call, behind OpenAI's prefix."""
    return f"chatcmpl-{call_id}"


def usage_of(said: msgspec.Raw | None, tokens: Tokens) -> dict[str, Any]:
    """The provider's own `usage`, completed by what we know; empty where nothing is known."""
    usage: dict[str, Any] = _decode(said) if said and bytes(said) not in NOTHING else {}
    if tokens.input is not None or tokens.output is not None:
        made, taken = tokens.input or 0, tokens.output or 0
        usage.setdefault("prompt_tokens", made)
        usage.setdefault("completion_tokens", taken)
        usage.setdefault("total_tokens", made + taken)
    _detail(usage, "prompt_tokens_details", "cached_tokens", tokens.cached_input)
    _detail(usage, "completion_tokens_details", "reasoning_tokens", tokens.reasoning)
    return usage


def _detail(usage: dict[str, Any], group: str, name: str, figure: int | None) -> None:
    if figure is not None and usage:
        usage[group] = {name: figure, **(usage.get(group) or {})}


@dataclass(slots=True)
class ChunkWriter:
    """Makes the frames of one stream. `frame` gives b"" for a piece that callers are not told."""

    call_id: str
    model: str
    created: int
    include_usage: bool
    _usage: msgspec.Raw | None = None

    def __post_init__(self) -> None:
        self._usage = None

    def frame(self, chunk: bytes) -> bytes:
        """One piece as its server-sent event. Figures of usage are kept for the end, where OpenAI tells them."""
        found = _fields(chunk)
        usage = found.get("usage")
        if usage is not None and bytes(usage) not in NOTHING:
            self._usage = usage
        choices = found.get("choices")
        if choices is None or bytes(choices) in NOTHING:
            return b""
        body = {**self._head(), "choices": choices, **{name: found[name] for name in KEPT if name in found}}
        if self.include_usage:
            body["usage"] = None
        return event(body)

    def end(self, receipt: Receipt) -> bytes:
        """What follows the last piece: the usage, if it was asked for, and the mark of the end."""
        if not self.include_usage:
            return DONE
        usage = usage_of(self._usage, receipt.tokens) or None
        return event({**self._head(), "choices": [], "usage": usage}) + DONE

    def _head(self) -> dict[str, Any]:
        return {
            "id": completion_id(self.call_id),
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
        }


def event(body: Any) -> bytes:
    """One server-sent event. Line breaks within JSON are none of its values', so they may go."""
    text = encode(body)
    if b"\n" in text or b"\r" in text:
        text = encode(_decode(text))
    return b"data: %s\n\n" % text


def embeddings(output: bytes, model: str, spelling: str, tokens: Tokens) -> EmbeddingList:
    """Vectors, spelt as asked for."""
    found = _decode(output)
    data = [
        Embedding("embedding", item.get("index", place), _vector(item["embedding"], spelling))
        for place, item in enumerate(found["data"])
    ]
    said = found.get("usage") or {}
    read = said.get("prompt_tokens", tokens.input) or 0
    return EmbeddingList("list", data, model, TokenUsage(read, said.get("total_tokens") or read))


def _vector(numbers: Sequence[float], spelling: str) -> Any:
    if spelling == "float":
        return numbers
    floats = array("f", numbers)
    if byteorder == "big":
        floats.byteswap()
    return base64.b64encode(floats.tobytes()).decode()


def images(output: bytes, urls: Sequence[str], contents: Sequence[bytes], tokens: Tokens, now_s: int) -> ImageList:
    """Pictures by address, or by their bytes where there are `contents`; with the prompt that was really drawn."""
    told = _decode(output).get("data") if output else None
    prompts = [item.get("revised_prompt") if isinstance(item, dict) else None for item in told or ()]
    prompts += [None] * (len(urls) - len(prompts))
    if contents:
        data = [
            Image(b64_json=base64.b64encode(content).decode(), revised_prompt=prompt)
            for content, prompt in zip(contents, prompts, strict=False)
        ]
    else:
        data = [Image(url=url, revised_prompt=prompt) for url, prompt in zip(urls, prompts, strict=False)]
    usage = None
    if tokens.input is not None and tokens.output is not None:
        usage = ImageTokens(tokens.input, tokens.output, tokens.input + tokens.output)
    return ImageList(now_s, data, usage)
