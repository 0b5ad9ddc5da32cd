"""A conversation in Gemini's shape: contents of user and model, with parts; the instruction apart from them."""

import mimetypes
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from libs.faults.fault import Fault
from services.provider_adapter.adapters.google.manifest import NAME
from services.provider_adapter.domain.inputs import loaded
from services.provider_adapter.domain.replies import object_of, text_of
from services.provider_adapter.domain.turns import Part, ToolCall, Turn, inline, picture_of, turns_of, unspoken

_SOUNDS = {"wav": "audio/wav", "mp3": "audio/mp3"}


def conversation(given: Mapping[str, Any]) -> dict[str, Any]:
    """`contents` and, where there is one, `systemInstruction`. Every instruction goes before the conversation, in
    order: Gemini has one place for them."""
    system: list[dict[str, Any]] = []
    contents: list[dict[str, Any]] = []
    names: dict[str, str] = {}  # the id of a call -> the function that it called: answers go by the function's name
    for turn in turns_of(given):
        if turn.role in ("system", "developer"):
            turn.text()  # refuses what is none
            system += [{"text": part.value} for part in turn.parts]
            continue
        names |= {call.id: call.name for call in turn.calls}
        role = "model" if turn.role == "assistant" else "user"
        parts = list(_parts(turn, names))
        if not parts:
            continue
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": role, "parts": parts})
    if not contents:
        raise Fault.invalid(("/input/messages", "must hold a message of the user"))
    return {"contents": contents} | ({"systemInstruction": {"parts": system}} if system else {})


def _parts(turn: Turn, names: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    if turn.role == "tool":
        if turn.answers not in names:
            raise Fault.invalid((f"{turn.pointer}/tool_call_id", "answers no call of an earlier message"))
        return [{"functionResponse": {"name": names[turn.answers], "response": _result(turn.text())}}]
    said = [{"text": part.value} if part.kind in ("text", "refusal") else _part(part) for part in turn.parts]
    return [*said, *map(_called, turn.calls)]


def _called(call: ToolCall) -> dict[str, Any]:
    """A call that the model has made. Its signature of thought must go back as it came."""
    signature = object_of(object_of(call.whole.get("extra_content")).get(NAME)).get("thought_signature")
    made: dict[str, Any] = {"functionCall": {"name": call.name, "args": dict(call.arguments)}}
    return made | ({"thoughtSignature": signature} if isinstance(signature, str) else {})


def _result(text: str) -> Mapping[str, Any]:
    """A function's answer as an object, which Gemini wants."""
    value = loaded(text.encode())
    return value if isinstance(value, Mapping) else {"result": text}


def _part(part: Part) -> dict[str, Any]:
    if part.kind == "image_url":
        return _data(picture_of(part), f"{part.pointer}/image_url/url", "image/jpeg")
    value = object_of(part.value)
    if part.kind == "input_audio":
        media_type = _SOUNDS.get(text_of(value.get("format")))
        if media_type is None or not isinstance(value.get("data"), str):
            raise Fault.invalid((f"{part.pointer}/input_audio", "must have data in base64 and the format wav or mp3"))
        return {"inlineData": {"mimeType": media_type, "data": value["data"]}}
    if part.kind == "file" and isinstance(value.get("file_data"), str):
        return _data(value["file_data"], f"{part.pointer}/file/file_data", "application/pdf")
    raise unspoken(part, NAME)


def _data(url: str, pointer: str, otherwise: str) -> dict[str, Any]:
    data = inline(url, pointer)
    if data is not None:
        return {"inlineData": {"mimeType": data.media_type, "data": data.base64}}
    return {"fileData": {"mimeType": mimetypes.guess_type(urlsplit(url).path)[0] or otherwise, "fileUri": url}}
