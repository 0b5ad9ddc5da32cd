"""What Anthropic's words mean in OpenAI's: reasons, usage, blocks."""

from collections.abc import Mapping
from typing import Any

from services.provider_adapter.domain.calls import Usage, count
from services.provider_adapter.domain.chunks import tool_call
from services.provider_adapter.domain.replies import list_of, object_of, text_of

REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Anthropic counts cached tokens beside the others; ours are counted within."""
    plain, read = count(usage, "input_tokens"), count(usage, "cache_read_input_tokens")
    written = count(usage, "cache_creation_input_tokens")
    return Usage(
        input_tokens=None if plain is None else plain + (read or 0) + (written or 0),
        cached_input_tokens=read,
        cache_write_tokens=written,
        cache_write_long_tokens=count(usage, "cache_creation", "ephemeral_1h_input_tokens"),
        output_tokens=count(usage, "output_tokens"),
        reasoning_tokens=count(usage, "output_tokens_details", "thinking_tokens"),
    )


def message_of(content: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The message that blocks make, and the types of blocks that nobody accounts for."""
    texts, thoughts, kept, calls, unknown = [], [], [], [], []
    for block in map(object_of, list_of(content)):
        match block.get("type"):
            case "text":
                texts.append(text_of(block.get("text")))
            case "thinking":
                thoughts.append(text_of(block.get("thinking")))
                kept.append(dict(block))
            case "redacted_thinking":
                kept.append(dict(block))
            case "tool_use":
                calls.append(tool_call(text_of(block.get("id")), text_of(block.get("name")), block.get("input") or {}))
            case other:
                unknown.append(f"message.content[].type={other}")
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None, "refusal": None}
    if any(thoughts):
        message["reasoning_content"] = "".join(thoughts)
    if kept:  # the next turn of a conversation with tools must give them back as they came
        message["thinking_blocks"] = kept
    if calls:
        message["tool_calls"] = calls
    return message, tuple(unknown)
