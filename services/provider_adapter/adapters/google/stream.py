"""The same, told piece by piece: each event is an answer of its own, and its parts become chunks.

There is no last event by name: an answer has ended when every candidate has said why.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from services.provider_adapter.adapters.google import call
from services.provider_adapter.adapters.google.answers import call_id, call_of, parts_of, reason_of, usage_of
from services.provider_adapter.adapters.google.faults import TABLE
from services.provider_adapter.adapters.google.manifest import MANIFEST
from services.provider_adapter.adapters.google.options import options
from services.provider_adapter.domain.calls import Piece
from services.provider_adapter.domain.chunks import Head
from services.provider_adapter.domain.events import Event
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.inputs import loaded
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.replies import list_of, object_of, text_of
from services.provider_adapter.domain.streams import EventStream


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request of one streamed conversation."""
    return call.request_of(job, "streamGenerateContent", (("alt", "sse"),))


def reader(job: Job, headers: Mapping[str, str]) -> "AnswerReader":
    """A reader of its events."""
    return AnswerReader(job, headers)


class AnswerReader(EventStream):
    """Reads answers until every candidate has ended."""

    table = TABLE

    def __init__(self, job: Job, headers: Mapping[str, str]) -> None:
        super().__init__(headers)
        chosen, self.told.ignored_fields = options(job.input, job.model)
        self._wanted = int(chosen.get("generationConfig", {}).get("candidateCount", 1))
        self._wants_usage = bool(object_of(job.input.get("stream_options")).get("include_usage"))
        self._job = job
        self._head: Head | None = None
        self._calls: dict[int, int] = {}  # candidate -> how many functions it has called
        self._over: set[int] = set()

    def take(self, event: Event) -> list[Piece]:
        """See EventStream.take."""
        answer = loaded(event.data)
        if not isinstance(answer, Mapping):
            raise msgspec.ValidationError
        blocked = object_of(answer.get("promptFeedback")).get("blockReason")
        if answer.get("error") or blocked:
            raise self.refusal(event.data)
        self.note(unknown_fields("answer", answer, MANIFEST.read_fields, MANIFEST.ignored_fields))
        pieces: list[Piece] = []
        if self._head is None:
            self._head = call.head_of(answer, self._job, HttpResponse(200, self._headers))
            self.told.provider_request_id, self.told.model = self._head.id, self._head.model
            pieces.append(Piece(self._head.chunk({"role": "assistant", "content": ""}), False))
        if isinstance(answer.get("usageMetadata"), Mapping):
            self.told.usage = usage_of(answer["usageMetadata"])
        for candidate in map(object_of, list_of(answer.get("candidates"))):
            pieces += self._said(self._head, candidate, event.data)
        if len(self._over) >= self._wanted:
            self.ended = True
            if self._wants_usage:
                pieces.append(Piece(self._head.usage_chunk(self.told.usage), False))
        return pieces

    def _said(self, head: Head, candidate: Mapping[str, Any], data: bytes) -> list[Piece]:
        index = candidate.get("index")
        index = index if isinstance(index, int) else 0
        pieces = [Piece(head.chunk(delta, index=index), True) for delta in self._deltas(head, candidate, index)]
        theirs = text_of(candidate.get("finishReason"))
        if not theirs:
            return pieces
        reason = reason_of(theirs, calls=bool(self._calls.get(index)))
        if not reason:
            raise self.refusal(data)
        silent = reason == "content_filter" and not pieces and not self.spoke
        if silent:
            self.refuses(index, data, self._wanted)
        self._over.add(index)
        self.told.finish_reason = self.told.finish_reason or reason
        return [*pieces, Piece(head.chunk({}, reason, index), not silent)]

    def _deltas(self, head: Head, candidate: Mapping[str, Any], index: int) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = []
        for part in parts_of(candidate):
            number = self._calls.get(index, 0)
            called = call_of(part, call_id(head.id, number))
            if called is not None:
                self._calls[index] = number + 1
                deltas.append({"tool_calls": [{"index": number, **called}]})
            elif isinstance(part.get("text"), str) and part["text"]:
                deltas.append({"reasoning_content" if part.get("thought") is True else "content": part["text"]})
        return deltas
