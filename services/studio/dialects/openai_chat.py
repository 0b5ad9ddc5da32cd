"""Chat completions in the OpenAI dialect: the request, the answer, and the chunks of a streamed one."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from services.studio.domain import tokens
from services.studio.domain.accounts import Model
from services.studio.domain.chat import (
    JSON_OBJECT,
    JSON_SCHEMA,
    STOP,
    TEXT,
    Answer,
    ChatJob,
    Chunk,
    Message,
    Piece,
    Tool,
)
from services.studio.domain.refusals import Reason, Refusal

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
N_MAX = 8
KNOBS = (("temperature", 0, 2), ("top_p", 0, 1), ("presence_penalty", -2, 2), ("frequency_penalty", -2, 2))
REASONING = {"none": 0, "minimal": 8, "low": 16, "medium": 48, "high": 128}
PER_MESSAGE, PER_REPLY = 3, 3
DONE = b"data: [DONE]\n\n"
NOT_HERE: Mapping[str, tuple[Any, ...]] = {
    "audio": (),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "top_logprobs": (0,),
    "verbosity": ("medium",),
    "web_search_options": (),
}
"""What would change an answer and is not built, with the values that ask for nothing."""


def read_chat(body: Mapping[str, Any], model: Model) -> ChatJob:
    """Reads a request for `model`. Raises Refusal."""
    for name, nothing in NOT_HERE.items():
        if body.get(name) is not None and body[name] not in nothing:
            raise _unsupported(name)
    messages = _messages(body.get("messages"))
    tools, must_call = _tools(body, model)
    form, schema = _format(body, model)
    given = json.dumps([body.get("tools") or [], schema], ensure_ascii=False) if tools or schema else ""
    prompt = PER_REPLY + tokens.count(given) + sum(PER_MESSAGE + tokens.count(message.text) for message in messages)
    if prompt >= model.context_tokens:
        text = f"This model's maximum context length is {model.context_tokens} tokens. "
        text += f"However, your messages resulted in {prompt} tokens. Please reduce the length of the messages."
        raise Refusal(Reason.PARAMETER_INVALID, text, "messages", "context_length_exceeded")
    name = "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
    most = _whole(body, name, model.max_output_tokens, 1, model.max_output_tokens)
    for knob, low, high in KNOBS:
        value = body.get(knob)
        if value is not None and not (isinstance(value, int | float) and low <= value <= high):
            raise _invalid(knob, f"expected a number from {low} to {high}")
    options = body.get("stream_options") or {}
    return ChatJob(
        model=model.id,
        messages=messages,
        prompt_tokens=prompt,
        max_tokens=min(most, model.context_tokens - prompt),
        n=_whole(body, "n", 1, 1, N_MAX),
        stop=_stops(body.get("stop")),
        stream=body.get("stream") is True,
        include_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
        tools=tools,
        must_call=must_call,
        format=form,
        schema=schema,
        reasoning_tokens=_reasoning(body, model),
    )


def _messages(given: Any) -> tuple[Message, ...]:
    if not given:
        raise Refusal(Reason.PARAMETER_MISSING, "Missing required parameter: 'messages'.", "messages")
    if not isinstance(given, list):
        raise _invalid("messages", "expected an array of objects")
    names: dict[str, str] = {}
    read = []
    for index, item in enumerate(given):
        if not isinstance(item, Mapping) or item.get("role") not in ROLES:
            raise _invalid(f"messages[{index}].role", f"supported values are {', '.join(ROLES)}")
        calls = [call for call in item.get("tool_calls") or () if isinstance(call, Mapping)]
        names |= {str(call.get("id")): str((call.get("function") or {}).get("name") or "") for call in calls}
        text = _text(item.get("content"), f"messages[{index}].content", optional=bool(calls))
        name = names.get(str(item.get("tool_call_id")), "") if item["role"] == "tool" else str(item.get("name") or "")
        read.append(Message(item["role"], text, name))
    return tuple(read)


def _text(content: Any, where: str, *, optional: bool) -> str:
    if isinstance(content, str):
        return content
    if content is None and optional:
        return ""
    if not isinstance(content, list):
        raise _invalid(where, "expected a string or an array of parts")
    words = []
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind not in ("text", "refusal") or not isinstance(part.get(kind), str):
            raise _invalid(f"{where}[{index}]", "this model takes parts of type text")
        words.append(part[kind])
    return "\n".join(words)


def _tools(body: Mapping[str, Any], model: Model) -> tuple[tuple[Tool, ...], bool]:
    """The tools that may be called and whether one must be."""
    given, choice = body.get("tools") or [], body.get("tool_choice") or "auto"
    if not given:
        if choice not in ("auto", "none"):
            raise _invalid("tool_choice", "it is only allowed when tools are specified")
        return (), False
    if "tools" not in model.features:
        raise _unsupported("tools")
    tools = []
    for index, item in enumerate(given if isinstance(given, list) else [None]):
        function = item.get("function") if isinstance(item, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise _invalid(f"tools[{index}].function.name", "expected a string")
        parameters = function.get("parameters")
        tools.append(Tool(function["name"], parameters if isinstance(parameters, Mapping) else {}))
    if isinstance(choice, Mapping):
        wanted = (choice.get("function") or {}).get("name")
        tools = [tool for tool in tools if tool.name == wanted]
        if not tools:
            raise _invalid("tool_choice", "it names no function of tools")
    elif choice not in ("auto", "none", "required"):
        raise _invalid("tool_choice", "supported values are none, auto, required and a function")
    return (() if choice == "none" else tuple(tools)), choice not in ("auto", "none")


def _format(body: Mapping[str, Any], model: Model) -> tuple[str, Mapping[str, Any]]:
    given = body.get("response_format")
    if given is None:
        return TEXT, {}
    kind = given.get("type") if isinstance(given, Mapping) else None
    if kind not in (TEXT, JSON_OBJECT, JSON_SCHEMA):
        raise _invalid("response_format.type", "supported values are text, json_object and json_schema")
    if kind != JSON_SCHEMA:
        return kind, {}
    if "json_schema" not in model.features:
        raise _unsupported("response_format")
    schema = (given.get("json_schema") or {}).get("schema")
    if not isinstance(schema, Mapping):
        raise _invalid("response_format.json_schema.schema", "expected a JSON schema")
    return JSON_SCHEMA, schema


def _stops(given: Any) -> tuple[str, ...]:
    stops = [given] if isinstance(given, str) else given or []
    if not isinstance(stops, list) or len(stops) > 4 or not all(isinstance(stop, str) and stop for stop in stops):
        raise _invalid("stop", "expected a string or up to 4 of them")
    return tuple(stops)


def _reasoning(body: Mapping[str, Any], model: Model) -> int:
    effort = body.get("reasoning_effort")
    if effort is None:
        return 0
    if "reasoning" not in model.features:
        raise _unsupported("reasoning_effort")
    if effort not in REASONING:
        raise _invalid("reasoning_effort", f"supported values are {', '.join(REASONING)}")
    return REASONING[effort]


def _whole(body: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _invalid(name, f"expected a whole number from {low} to {high}")
    return value


def _invalid(param: str, hint: str) -> Refusal:
    return Refusal(Reason.PARAMETER_INVALID, f"Invalid value for '{param}': {hint}.", param)


def _unsupported(param: str) -> Refusal:
    text = f"Unsupported parameter: '{param}' is not supported with this model."
    return Refusal(Reason.PARAMETER_INVALID, text, param, "unsupported_parameter")


def usage_view(job: ChatJob, said: int) -> dict[str, Any]:
    """Tokens read and written; `said` leaves out what was thought."""
    written = said + job.reasoning_tokens * job.n
    return {
        "prompt_tokens": job.prompt_tokens,
        "completion_tokens": written,
        "total_tokens": job.prompt_tokens + written,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": job.reasoning_tokens * job.n},
    }


@dataclass(frozen=True, slots=True)
class Envelope:
    """What all pieces of one answer carry."""

    id: str
    model: str
    created: int

    def of(self, kind: str, choices: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
        """One object of the wire."""
        head = {"id": self.id, "object": kind, "created": self.created, "model": self.model}
        return {**head, "system_fingerprint": "fp_studio", "choices": list(choices), **more}


def chat_view(envelope: Envelope, job: ChatJob, answers: Sequence[Answer]) -> dict[str, Any]:
    """The answer in one piece."""
    choices = [
        {"index": index, "message": _message(envelope, answer, index), "logprobs": None, "finish_reason": answer.finish}
        for index, answer in enumerate(answers)
    ]
    usage = usage_view(job, sum(len(answer.tokens) for answer in answers))
    return envelope.of("chat.completion", choices, usage=usage)


def _message(envelope: Envelope, answer: Answer, index: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.refused:
        message |= {"content": None, "refusal": answer.text}
    if answer.tool:
        call = {"name": answer.tool, "arguments": answer.text}
        message |= {
            "content": None,
            "tool_calls": [{"id": _call_id(envelope, index), "type": "function", "function": call}],
        }
    return message


def chunks(envelope: Envelope, job: ChatJob, answers: Sequence[Answer]) -> Iterator[Chunk]:
    """The events of a stream, `[DONE]` among them: for each choice its head, its tokens one by one and its end."""
    more: dict[str, Any] = {"usage": None} if job.include_usage else {}

    def event(index: int, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse(envelope.of("chat.completion.chunk", [choice], **more))

    for index, answer in enumerate(answers):
        yield Chunk(event(index, _head(envelope, answer, index)))
        for token in answer.tokens:
            yield Chunk(event(index, _delta(answer, token)), tokens=1)
        yield Chunk(event(index, {}, answer.finish))
    if job.include_usage:
        usage = usage_view(job, sum(len(answer.tokens) for answer in answers))
        yield Chunk(sse(envelope.of("chat.completion.chunk", [], usage=usage)))
    yield Chunk(DONE)


async def chunks_as_made(
    envelope: Envelope, job: ChatJob, pieces: AsyncGenerator[Piece, None]
) -> AsyncGenerator[Chunk, None]:
    """The same events for a single answer that is still being made."""
    more: dict[str, Any] = {"usage": None} if job.include_usage else {}

    def event(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse(envelope.of("chat.completion.chunk", [choice], **more))

    said, finish = 0, STOP
    yield Chunk(event(_head(envelope, Answer(()), 0)))
    async with aclosing(pieces):
        async for piece in pieces:
            finish = piece.finish or finish
            if piece.text:
                said += 1
                yield Chunk(event({"content": piece.text}), tokens=1)
    yield Chunk(event({}, finish))
    if job.include_usage:
        yield Chunk(sse(envelope.of("chat.completion.chunk", [], usage=usage_view(job, said))))
    yield Chunk(DONE)


def _head(envelope: Envelope, answer: Answer, index: int) -> dict[str, Any]:
    head: dict[str, Any] = {"role": "assistant", "content": "", "refusal": None}
    if answer.tool:
        function = {"name": answer.tool, "arguments": ""}
        call = {"index": 0, "id": _call_id(envelope, index), "type": "function", "function": function}
        head |= {"content": None, "tool_calls": [call]}
    return head


def _delta(answer: Answer, token: str) -> dict[str, Any]:
    if answer.tool:
        return {"tool_calls": [{"index": 0, "function": {"arguments": token}}]}
    return {"refusal" if answer.refused else "content": token}


def _call_id(envelope: Envelope, index: int) -> str:
    return f"call_{envelope.id.removeprefix('chatcmpl-')}{index}"


def sse(value: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
