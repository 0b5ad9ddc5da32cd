"""OpenAI's `chat.completion` and `chat.completion.chunk`, made of what other dialects say."""

from collections.abc import Mapping
from typing import Any

from services.provider_adapter.domain.inputs import encoded
from services.provider_adapter.domain.replies import list_of, loaded, object_of


def chunk_of(output: bytes) -> bytes:
    """A whole completion as one chunk."""
    body = object_of(loaded(output))
    choices = [_whole_delta(object_of(choice)) for choice in list_of(body.get("choices"))]
    return encoded({**body, "object": "chat.completion.chunk", "choices": choices})


def _whole_delta(choice: Mapping[str, Any]) -> dict[str, Any]:
    message = dict(object_of(choice.get("message")))
    calls = list_of(message.get("tool_calls"))
    if calls:
        message["tool_calls"] = [{**object_of(call), "index": index} for index, call in enumerate(calls)]
    return {name: value for name, value in choice.items() if name != "message"} | {"delta": message}
