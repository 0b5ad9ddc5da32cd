"""The shapes of OpenAI's answers that we give; the OpenAPI document is drawn from them. What is not said is absent."""

from typing import Any

from msgspec import Struct


class TokenDetails(Struct, frozen=True, omit_defaults=True):
    """Parts of the tokens, where the provider told them."""

    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class TokenUsage(Struct, frozen=True, omit_defaults=True):
    """Tokens of a completion or of a batch of embeddings."""

    prompt_tokens: int
    total_tokens: int
    completion_tokens: int | None = None
    prompt_tokens_details: dict[str, Any] | None = None
    completion_tokens_details: dict[str, Any] | None = None


class ChatCompletion(Struct, frozen=True, omit_defaults=True):
    """One completion. With `stream` come chunks of the same call, `object` being `chat.completion.chunk`."""

    id: str
    object: str
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: dict[str, Any] | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None


class Embedding(Struct, frozen=True):
    """One vector: numbers, or base64 of 32-bit floats, lowest byte first."""

    object: str
    index: int
    embedding: list[float] | str


class EmbeddingList(Struct, frozen=True):
    """Vectors in the order of the texts."""

    object: str
    data: list[Embedding]
    model: str
    usage: TokenUsage


class Image(Struct, frozen=True, omit_defaults=True):
    """One picture: where its bytes are read with the same key, or the bytes in base64."""

    url: str | None = None
    b64_json: str | None = None
    revised_prompt: str | None = None


class ImageTokens(Struct, frozen=True):
    """Tokens, from providers that count pictures in them."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class ImageList(Struct, frozen=True, omit_defaults=True):
    """Pictures in the order in which they were made."""

    created: int
    data: list[Image]
    usage: ImageTokens | None = None
