"""What Gemini's words mean in OpenAI's: reasons, usage, parts."""

from collections.abc import Mapping
from typing import Any

from services.provider_adapter.adapters.google.manifest import NAME
from services.provider_adapter.domain.calls import Usage, count
from services.provider_adapter.domain.chunks import tool_call
from services.provider_adapter.domain.replies import list_of, object_of, text_of

_FILTERED = frozenset(
    "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION".split()
)


def reason_of(theirs: str, *, calls: bool) -> str:
    """Why an answer ended, in OpenAI's words; "" for an end that is none: the model broke off."""
    if theirs == "STOP":
        return "tool_calls" if calls else "stop"
    if theirs == "MAX_TOKENS":
        return "length"
    return "content_filter" if theirs in _FILTERED else ""


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Gemini counts thinking beside the answer, and what tools brought beside the prompt; ours are counted within."""
    read, tools = count(usage, "promptTokenCount"), count(usage, "toolUsePromptTokenCount")
    made, thought = count(usage, "candidatesTokenCount"), count(usage, "thoughtsTokenCount")
    return Usage(
        input_tokens=None if read is None else read + (tools or 0),
        cached_input_tokens=count(usage, "cachedContentTokenCount"),
        input_audio_tokens=_of_kind(usage, "promptTokensDetails", "AUDIO"),
        input_image_tokens=_of_kind(usage, "promptTokensDetails", "IMAGE"),
        output_tokens=None if made is None and thought is None else (made or 0) + (thought or 0),
        reasoning_tokens=thought,
        output_image_tokens=_of_kind(usage, "candidatesTokensDetails", "IMAGE"),
    )


def _of_kind(usage: Mapping[str, Any], details: str, kind: str) -> int | None:
    found = [object_of(item) for item in list_of(usage.get(details))]
    return next((count(item, "tokenCount") for item in found if item.get("modality") == kind), None)


def parts_of(candidate: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The parts of a candidate's content."""
    return [object_of(part) for part in list_of(object_of(candidate.get("content")).get("parts"))]


def call_of(part: Mapping[str, Any], call_id: str) -> dict[str, Any] | None:
    """The call of a function that a part is; None for another part."""
    function = part.get("functionCall")
    if not isinstance(function, Mapping):
        return None
    signature = part.get("thoughtSignature")
    more = {"extra_content": {NAME: {"thought_signature": signature}}} if isinstance(signature, str) else {}
    return tool_call(call_id, text_of(function.get("name")), function.get("args") or {}, **more)


def call_id(response_id: str, number: int) -> str:
    """An id for the n-th call of an answer: Gemini knows calls by the names of their functions."""
    return f"call_{response_id}_{number}"


def message_of(candidate: Mapping[str, Any], response_id: str) -> dict[str, Any]:
    """The message that a candidate makes."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in parts_of(candidate):
        called = call_of(part, call_id(response_id, len(calls)))
        if called is not None:
            calls.append(called)
        elif isinstance(part.get("text"), str):
            (thoughts if part.get("thought") is True else texts).append(part["text"])
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None, "refusal": None}
    if any(thoughts):
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message
