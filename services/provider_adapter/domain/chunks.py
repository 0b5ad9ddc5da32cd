"""OpenAI's `chat.completion` and `chat.completion.chunk`, made of what other dialects say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.provider_adapter.domain.calls import Usage
from services.provider_adapter.domain.inputs import encoded, loaded
from services.provider_adapter.domain.replies import list_of, object_of


@dataclass(frozen=True, slots=True)
class Head:
    """What every chunk of one completion repeats. `created` is in seconds since the epoch, by the provider's clock."""

    id: str
    model: str
    created: int

    def completion(self, choices: list[dict[str, Any]], usage: Usage) -> bytes:
        """A whole completion. A choice has `message`, `finish_reason`."""
        numbered = [{"index": index, **choice, "logprobs": None} for index, choice in enumerate(choices)]
        return encoded({**self._as("chat.completion"), "choices": numbered, "usage": usage_as_openai(usage)})

    def chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None, index: int = 0) -> bytes:
        """One chunk of one choice."""
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return encoded({**self._as("chat.completion.chunk"), "choices": [choice]})

    def usage_chunk(self, usage: Usage) -> bytes:
        """The last chunk, for a caller who asked for usage."""
        return encoded({**self._as("chat.completion.chunk"), "choices": [], "usage": usage_as_openai(usage)})

    def _as(self, what: str) -> dict[str, Any]:
        return {"id": self.id, "object": what, "created": self.created, "model": self.model}


def usage_as_openai(usage: Usage) -> dict[str, Any]:
    """Usage in OpenAI's words; what was not reported is left out, save for the totals."""
    read, made = usage.input_tokens or 0, usage.output_tokens or 0
    cached = {"cached_tokens": usage.cached_input_tokens, "cache_write_tokens": usage.cache_write_tokens}
    thought = {"reasoning_tokens": usage.reasoning_tokens}
    return {
        "prompt_tokens": read,
        "completion_tokens": made,
        "total_tokens": read + made,
        "prompt_tokens_details": {name: value for name, value in cached.items() if value is not None},
        "completion_tokens_details": {name: value for name, value in thought.items() if value is not None},
    }


def tool_call(call_id: str, name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    """A call of a function; `arguments` a JSON value, or text that is one already."""
    text = arguments if isinstance(arguments, str) else encoded(arguments).decode()
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}, **more}


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
