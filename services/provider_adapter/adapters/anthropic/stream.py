"""The same, told piece by piece: Anthropic's events as chunks."""

from collections.abc import Mapping
from typing import Any

import msgspec

from services.provider_adapter.adapters.anthropic import call
from services.provider_adapter.adapters.anthropic.answers import REASONS, usage_of
from services.provider_adapter.adapters.anthropic.faults import TABLE
from services.provider_adapter.adapters.anthropic.manifest import MANIFEST
from services.provider_adapter.adapters.anthropic.options import options
from services.provider_adapter.domain.calls import Piece
from services.provider_adapter.domain.chunks import Head
from services.provider_adapter.domain.events import Event
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.inputs import loaded
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.replies import answered_at, object_of, text_of
from services.provider_adapter.domain.streams import EventStream

_LAST, _SILENT = "message_stop", frozenset({"ping", "content_block_stop"})


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request of one streamed conversation."""
    return call.request_of(job, {"stream": True})


def reader(job: Job, headers: Mapping[str, str]) -> "MessageReader":
    """A reader of its events."""
    return MessageReader(job, headers)


class MessageReader(EventStream):
    """Reads events from `message_start` to `message_stop`."""

    table = TABLE

    def __init__(self, job: Job, headers: Mapping[str, str]) -> None:
        super().__init__(headers)
        self.told.provider_request_id = headers.get("request-id", "")
        self.told.ignored_fields = options(job.input, job.model)[1]
        self._wants_usage = bool(object_of(job.input.get("stream_options")).get("include_usage"))
        self._head = Head("", job.model, int(answered_at(HttpResponse(200, headers)).timestamp()))
        self._usage: dict[str, Any] = {}
        self._calls: dict[Any, int] = {}  # a block's index -> which call of a tool it is

    def take(self, event: Event) -> list[Piece]:
        """See EventStream.take."""
        said = loaded(event.data)
        if not isinstance(said, Mapping):
            raise msgspec.ValidationError
        kind = said.get("type")
        if kind in _SILENT:
            return []
        if kind == _LAST:
            self.ended = True
            return [Piece(self._head.usage_chunk(self.told.usage), False)] if self._wants_usage else []
        if kind == "error" or said.get("error"):
            raise self.refusal(event.data)
        self.note(unknown_fields("event", said, MANIFEST.read_fields, MANIFEST.ignored_fields))
        match kind:
            case "message_start":
                return self._started(object_of(said.get("message")))
            case "content_block_start":
                return self._block(said.get("index"), object_of(said.get("content_block")))
            case "content_block_delta":
                return self._delta(said.get("index"), object_of(said.get("delta")))
            case "message_delta":
                return self._ending(said, event.data)
        self.note((f"event.type={kind}",))
        return []

    def _started(self, message: Mapping[str, Any]) -> list[Piece]:
        self._head = Head(text_of(message.get("id")), text_of(message.get("model")), self._head.created)
        self.told.provider_request_id = self.told.provider_request_id or self._head.id
        self.told.model = self._head.model
        self._count(message.get("usage"))
        self.note(unknown_fields("message", message, MANIFEST.read_fields, MANIFEST.ignored_fields))
        return self._piece({"role": "assistant", "content": ""}, token=False)

    def _block(self, index: Any, block: Mapping[str, Any]) -> list[Piece]:
        match block.get("type"):
            case "tool_use":
                number = self._calls[index] = len(self._calls)
                function = {"name": text_of(block.get("name")), "arguments": ""}
                started = {"index": number, "id": text_of(block.get("id")), "type": "function", "function": function}
                return self._piece({"tool_calls": [started]})
            case "redacted_thinking":
                return self._piece({"thinking_blocks": [dict(block)]}, token=False)
            case "text":
                return self._text("content", block.get("text"))
            case "thinking":
                return self._text("reasoning_content", block.get("thinking"))
        self.note((f"event.content_block.type={block.get('type')}",))
        return []

    def _delta(self, index: Any, delta: Mapping[str, Any]) -> list[Piece]:
        match delta.get("type"):
            case "text_delta":
                return self._text("content", delta.get("text"))
            case "thinking_delta":
                return self._text("reasoning_content", delta.get("thinking"))
            case "input_json_delta":
                if index not in self._calls:
                    return []
                arguments = {"arguments": text_of(delta.get("partial_json"))}
                return self._piece({"tool_calls": [{"index": self._calls[index], "function": arguments}]})
            case "signature_delta":
                block = {"type": "thinking", "thinking": "", "signature": text_of(delta.get("signature"))}
                return self._piece({"thinking_blocks": [block]}, token=False)
            case "citations_delta":
                return []
        self.note((f"event.delta.type={delta.get('type')}",))
        return []

    def _ending(self, said: Mapping[str, Any], data: bytes) -> list[Piece]:
        self._count(said.get("usage"))
        theirs = object_of(said.get("delta")).get("stop_reason")
        if not isinstance(theirs, str):
            return []
        if theirs == "refusal" and not self.spoke:
            raise self.refusal(data)
        if theirs not in REASONS:
            self.note((f"message.stop_reason={theirs}",))
        self.told.finish_reason = REASONS.get(theirs, "stop")
        return [Piece(self._head.chunk({}, self.told.finish_reason), True)]

    def _count(self, usage: Any) -> None:
        """Figures are running totals; what an event does not say holds on."""
        self._usage |= {name: value for name, value in object_of(usage).items() if value is not None}
        self.told.usage = usage_of(self._usage)

    def _text(self, name: str, text: Any) -> list[Piece]:
        return self._piece({name: text}) if text and isinstance(text, str) else []

    def _piece(self, delta: Mapping[str, Any], token: bool = True) -> list[Piece]:
        return [Piece(self._head.chunk(delta), token)]
