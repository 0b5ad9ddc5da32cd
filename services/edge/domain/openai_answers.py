"""From what a call gave to OpenAI's answers (OAI-1): pure, and as few steps as the bytes allow.

The id of a completion is our call's, its model the Public Model that was asked for: neither tells which provider
served it. Fields that OpenAI does not have stay behind.
"""

import base64
from array import array
from collections.abc import Sequence
from sys import byteorder
from typing import Any

import msgspec

from services.edge.domain.calls import Fields, Receipt, Tokens, encode
from services.edge.domain.openai_shapes import Embedding, EmbeddingList, Image, ImageList, ImageTokens, TokenUsage

_fields = msgspec.json.Decoder(Fields).decode
_decode = msgspec.json.Decoder().decode
KEPT = ("service_tier", "system_fingerprint")
NOTHING = (b"", b"null", b"[]")
START = b"data: "
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
        read, written = tokens.input or 0, tokens.output or 0
        usage.setdefault("prompt_tokens", read)
        usage.setdefault("completion_tokens", written)
        usage.setdefault("total_tokens", read + written)
    _detail(usage, "prompt_tokens_details", "cached_tokens", tokens.cached_input)
    _detail(usage, "completion_tokens_details", "reasoning_tokens", tokens.reasoning)
    return usage


def _detail(usage: dict[str, Any], group: str, name: str, figure: int | None) -> None:
    if figure is not None and usage:
        usage[group] = {name: figure, **(usage.get(group) or {})}


class _Chunk(msgspec.Struct):
    """What is read of a piece, as the bytes that came; b"" is what it does not have."""

    choices: msgspec.Raw = msgspec.Raw(b"")
    usage: msgspec.Raw = msgspec.Raw(b"")
    service_tier: msgspec.Raw = msgspec.Raw(b"")
    system_fingerprint: msgspec.Raw = msgspec.Raw(b"")


_chunk = msgspec.json.Decoder(_Chunk).decode


class ChunkWriter:
    """Makes the frames of one stream. `frame` gives b"" for a piece that callers are not told.

    What every frame repeats is written once: a stream has a thousand of them.
    """

    def __init__(self, call_id: str, model: str, created: int, include_usage: bool) -> None:
        self._head: dict[str, Any] = {
            "id": completion_id(call_id),
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._include_usage = include_usage
        self._before = b'%s%s,"choices":' % (START, encode(self._head)[:-1])
        self._after = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._usage: msgspec.Raw | None = None

    def frame(self, chunk: bytes) -> bytes:
        """One piece as its server-sent event. Figures of usage are kept for the end, where OpenAI tells them."""
        found = _chunk(chunk)
        if bytes(found.usage) not in NOTHING:
            self._usage = found.usage
        said = bytes(found.choices)
        if said in NOTHING:
            return b""
        for name in KEPT:
            if kept := bytes(getattr(found, name)):
                said += b',"%s":%s' % (name.encode(), kept)
        if b"\n" in said or b"\r" in said:
            body = b"%s%s%s" % (self._before[len(START) :], said, self._after)
            return event(msgspec.Raw(body.rstrip()))
        return b"%s%s%s" % (self._before, said, self._after)

    def end(self, receipt: Receipt) -> bytes:
        """What follows the last piece: the usage, if it was asked for, and the mark of the end."""
        if not self._include_usage:
            return DONE
        usage = usage_of(self._usage, receipt.tokens) or None
        return event({**self._head, "choices": [], "usage": usage}) + DONE


def event(body: Any) -> bytes:
    """One server-sent event. Line breaks within JSON are none of its values', so they may go."""
    text = encode(body)
    if b"\n" in text or b"\r" in text:
        text = encode(_decode(text))
    return b"%s%s\n\n" % (START, text)


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
