"""A conversation in Anthropic's shape: turns of user and assistant, with blocks; the system apart from them."""

from collections.abc import Iterable, Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.domain.replies import chosen, list_of, object_of
from services.provider_adapter.domain.turns import Part, Turn, inline, picture_of, turns_of, unspoken

NAME = "anthropic"


def conversation(given: Mapping[str, Any]) -> dict[str, Any]:
    """`messages` and, where there is one, `system`. Every instruction goes before the conversation, in order: Anthropic
    has one place for them."""
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    for turn in turns_of(given):
        if turn.role in ("system", "developer"):
            turn.text()  # refuses what is none
            system += [_text(part) for part in turn.parts]
            continue
        role = "assistant" if turn.role == "assistant" else "user"
        blocks = list(_blocks(turn))
        if not blocks:
            if role == "user":
                raise Fault.invalid((f"{turn.pointer}/content", "must not be empty in this dialect"))
            continue
        if messages and messages[-1]["role"] == role:  # answers of tools stand together, before the user's next words
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    if not messages:
        raise Fault.invalid(("/input/messages", "must hold a message of the user"))
    return {"messages": messages} | ({"system": system} if system else {})


def _blocks(turn: Turn) -> Iterable[dict[str, Any]]:
    if turn.role == "tool":
        content = [_block(part) for part in turn.parts]
        return [{"type": "tool_result", "tool_use_id": turn.answers, **({"content": content} if content else {})}]
    if turn.role == "user":
        return [_block(part) for part in turn.parts]
    thoughts = [dict(object_of(block)) for block in list_of(turn.whole.get("thinking_blocks"))]
    said = [_text(part) if part.kind in ("text", "refusal") else _block(part) for part in turn.parts]
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)} for call in turn.calls
    ]
    return [*thoughts, *said, *calls]


def _block(part: Part) -> dict[str, Any]:
    if part.kind == "text":
        return _text(part)
    cached = chosen(part.whole, "cache_control")
    if part.kind == "image_url":
        url = picture_of(part)
        return {"type": "image", "source": _source(url, f"{part.pointer}/image_url/url"), **cached}
    if part.kind == "file":
        data = object_of(part.value).get("file_data")
        if not isinstance(data, str):
            raise Fault.invalid(
                (f"{part.pointer}/file/file_data", "is required: this dialect knows no file_id of ours")
            )
        return {"type": "document", "source": _source(data, f"{part.pointer}/file/file_data"), **cached}
    raise unspoken(part, NAME)


def _text(part: Part) -> dict[str, Any]:
    return {"type": "text", "text": part.value, **chosen(part.whole, "cache_control")}


def _source(url: str, pointer: str) -> dict[str, Any]:
    data = inline(url, pointer)
    if data is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": data.media_type, "data": data.base64}
