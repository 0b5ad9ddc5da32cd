"""A conversation in OpenAI's shape, taken apart for dialects of another shape.

What cannot be read, and what a dialect has no word for, is refused by the name of its field with a remedy; nothing of
a conversation is left out silently.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.domain.inputs import decoded
from services.provider_adapter.domain.replies import list_of, object_of

ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
OTHERWISE = "leave it out, or use a supply of another dialect"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message: `kind` is its `type` in OpenAI's words, `value` what stands under that name."""

    kind: str
    value: Any
    pointer: str
    whole: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a function that the model has made. `whole` is all that came with it."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    whole: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message. `answers` is the id of the call that a message of role `tool` answers."""

    role: str
    parts: tuple[Part, ...]
    calls: tuple[ToolCall, ...]
    answers: str
    pointer: str
    whole: Mapping[str, Any]

    def text(self) -> str:
        """The text of a message that may hold nothing else."""
        for part in self.parts:
            if part.kind not in ("text", "refusal"):
                raise Fault.invalid((part.pointer, f"a message of role '{self.role}' may hold text only here"))
        return "\n".join(str(part.value) for part in self.parts)


def turns_of(given: Mapping[str, Any]) -> list[Turn]:
    """The messages of a chat input, in order."""
    messages = given.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Fault.invalid(("/input/messages", "is required: a list of messages"))
    return [_turn(message, f"/input/messages/{index}") for index, message in enumerate(messages)]


def _turn(message: Any, pointer: str) -> Turn:
    if not isinstance(message, Mapping) or message.get("role") not in ROLES:
        raise Fault.invalid((f"{pointer}/role", f"must be one of {', '.join(sorted(ROLES))}"))
    calls = tuple(
        _call(call, f"{pointer}/tool_calls/{index}") for index, call in enumerate(list_of(message.get("tool_calls")))
    )
    answers = message.get("tool_call_id")
    if message["role"] == "tool" and not isinstance(answers, str):
        raise Fault.invalid((f"{pointer}/tool_call_id", "is required: the id of the call that it answers"))
    parts = tuple(_parts(message.get("content"), f"{pointer}/content"))
    return Turn(message["role"], parts, calls, answers if isinstance(answers, str) else "", pointer, message)


def _parts(content: Any, pointer: str) -> Iterator[Part]:
    if content is None or content == "":
        return
    if isinstance(content, str):
        yield Part("text", content, pointer)
        return
    if not isinstance(content, list):
        raise Fault.invalid((pointer, "must be a text or a list of parts"))
    for index, part in enumerate(content):
        kind = object_of(part).get("type")
        if not isinstance(kind, str) or kind not in part:
            raise Fault.invalid((f"{pointer}/{index}", "must be a part: a type, and what stands under its name"))
        if kind == "text" and not isinstance(part["text"], str):
            raise Fault.invalid((f"{pointer}/{index}/text", "must be a text"))
        if kind != "text" or part["text"]:
            yield Part(kind, part[kind], f"{pointer}/{index}", part)


def _call(call: Any, pointer: str) -> ToolCall:
    function = object_of(object_of(call).get("function"))
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not name:
        raise Fault.invalid((f"{pointer}/function/name", "is required"))
    if not isinstance(call.get("id"), str):
        raise Fault.invalid((f"{pointer}/id", "is required"))
    where = f"{pointer}/function/arguments"
    value = decoded(arguments.encode(), where) if isinstance(arguments, str) and arguments.strip() else {}
    if not isinstance(value, Mapping):
        raise Fault.invalid((where, "must be a JSON object as text"))
    return ToolCall(call["id"], name, value, call)


@dataclass(frozen=True, slots=True)
class Inline:
    """Bytes in a `data:` URL, still as base64."""

    media_type: str
    base64: str


def inline(url: str, pointer: str) -> Inline | None:
    """What a `data:` URL holds; None for a URL to fetch."""
    if not url.startswith("data:"):
        if not url.startswith(("https://", "http://")):
            raise Fault.invalid((pointer, "must be an http, https or data URL"))
        return None
    head, comma, data = url[5:].partition(",")
    if not comma or not head.endswith(";base64"):
        raise Fault.invalid((pointer, "must be a data URL with base64"))
    return Inline(head.partition(";")[0] or "application/octet-stream", data)


def picture_of(part: Part) -> str:
    """The URL of a part of type `image_url`."""
    url = part.value if isinstance(part.value, str) else object_of(part.value).get("url")
    if not isinstance(url, str) or not url:
        raise Fault.invalid((f"{part.pointer}/image_url/url", "is required"))
    return url


def unspoken(part: Part, dialect: str) -> Fault:
    """The refusal of a part that a dialect has no word for."""
    return Fault.invalid((part.pointer, f"adapter '{dialect}' has no word for a part of type '{part.kind[:40]}'"))


def checked(given: Mapping[str, Any], dialect: str, said: frozenset[str], left_out: frozenset[str]) -> tuple[str, ...]:
    """The fields that are left out with our knowledge: of no consequence for the answer. Refuses every other field that
    the dialect cannot say, unless its value says nothing (null, or what holds without it)."""
    ignored = []
    for name in given:
        if name in said or name in _NOT_A_WORD:
            continue
        value = given[name]
        if value is None or (name in _NEUTRAL and value in _NEUTRAL[name]):
            continue
        if name not in left_out:
            raise Fault.invalid((f"/input/{name}", f"has no word in the dialect '{dialect}': {OTHERWISE}"))
        ignored.append(name)
    return tuple(ignored)


_NOT_A_WORD = frozenset({"model", "messages", "stream", "stream_options"})
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "response_format": ({"type": "text"},),
    "tools": ([],),
    "functions": ([],),
    "stop": ([], ""),
}


def number_in(given: Mapping[str, Any], name: str, low: float, high: float) -> float | None:
    """A number within the dialect's range, None when absent."""
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise Fault.invalid((f"/input/{name}", f"must be a number from {low:g} to {high:g} in this dialect"))
    return value


def tokens_at_most(given: Mapping[str, Any]) -> int | None:
    """How many tokens the answer may have, None when nobody says."""
    for name in ("max_completion_tokens", "max_tokens"):
        value = given.get(name)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise Fault.invalid((f"/input/{name}", "must be a whole number above 0"))
            return value
    return None


def stops_of(given: Mapping[str, Any]) -> list[str]:
    """The texts at which the answer stops."""
    value = given.get("stop") or []
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) and stop for stop in stops):
        raise Fault.invalid(("/input/stop", "must be a text or a list of texts"))
    return stops


def functions_of(given: Mapping[str, Any], dialect: str) -> list[Mapping[str, Any]]:
    """The functions that the model may call: each the object under `function`, with the tool's other fields."""
    tools: list[Mapping[str, Any]] = []
    for index, tool in enumerate(list_of(given.get("tools"))):
        function = object_of(object_of(tool).get("function"))
        pointer = f"/input/tools/{index}"
        if object_of(tool).get("type") != "function":
            raise Fault.invalid((f"{pointer}/type", f"must be 'function' in the dialect '{dialect}'"))
        if not isinstance(function.get("name"), str) or not function["name"]:
            raise Fault.invalid((f"{pointer}/function/name", "is required"))
        tools.append({**{name: value for name, value in tool.items() if name not in ("type", "function")}, **function})
    return tools


def schema_of(given: Mapping[str, Any], dialect: str, *, plain_json: bool) -> tuple[str, Any]:
    """How the answer is to be shaped: ("text", None), ("json", None) where the dialect can say it, ("schema", …)."""
    wanted = object_of(given.get("response_format"))
    kind = wanted.get("type", "text")
    if kind == "json_object" and plain_json:
        return "json", None
    if kind == "json_schema":
        schema = object_of(wanted.get("json_schema")).get("schema")
        if not isinstance(schema, Mapping):
            raise Fault.invalid(("/input/response_format/json_schema/schema", "is required"))
        return "schema", schema
    if kind != "text":
        words = "text, json_object or json_schema" if plain_json else "text or json_schema"
        raise Fault.invalid(("/input/response_format/type", f"must be {words} in the dialect '{dialect}'"))
    return "text", None
