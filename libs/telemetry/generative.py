"""Our kinds and adapters in the words of OpenTelemetry's GenAI conventions, version 1.41.0.

That is the last release of the conventions which holds them: since then they are written anew in a repository of their
own, which has made no release yet.
"""

from collections.abc import Mapping
from types import MappingProxyType

OPERATIONS: Mapping[str, str] = MappingProxyType(
    {
        "chat": "chat",
        "embedding": "embeddings",
        "image": "generate_content",
        "speech": "generate_content",
        "video": "generate_content",
    }
)
"""Kinds by what is done. The conventions have no word for others, which go by their own."""
OUTPUT_TYPES = frozenset({"image", "speech", "video"})
"""Kinds whose name tells what is made. Of a chat only its request could tell."""
PROVIDERS: Mapping[str, str] = MappingProxyType(
    {"anthropic": "anthropic", "azure_openai": "azure.ai.openai", "google": "gcp.gemini", "openai": "openai"}
)
"""Adapters whose providers the conventions have a name for; others go by their own."""


def operation_of(kind: str) -> str:
    """What is done for a request of that kind."""
    return OPERATIONS.get(kind, kind)


def provider_of(adapter: str) -> str:
    """Who does it."""
    return PROVIDERS.get(adapter, adapter)


def output_type_of(kind: str) -> str | None:
    """What is made; None where the kind does not tell."""
    return kind if kind in OUTPUT_TYPES else None
