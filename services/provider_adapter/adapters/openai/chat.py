"""Chat completions: the public shape is OpenAI's own, so bodies pass through with only what must differ changed."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from libs.faults.fault import Fault
from services.provider_adapter.adapters.openai.dialect import Dialect, cost_of, usage_of
from services.provider_adapter.domain.calls import Answered, Piece, Report
from services.provider_adapter.domain.events import Event
from services.provider_adapter.domain.exchange import HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.inputs import holds, loaded, raw_fields
from services.provider_adapter.domain.job import Job
from services.provider_adapter.domain.replies import answered_so, document, list_of, object_of, refused, text_of
from services.provider_adapter.domain.streams import EventStream

PATH = "/chat/completions"
DONE = b"[DONE]"


def body_of(job: Job, *, streamed: bool) -> dict[str, Any]:
    """The request's body: the input under the provider's name of the model. A stream always tells its usage."""
    body = raw_fields(job.input)
    if not holds(job.input, "messages"):
        raise Fault.invalid(("/input/messages", "is required: a list of messages"))
    body["model"] = job.model
    if streamed:
        options = job.input.get("stream_options")
        body["stream"] = True
        body["stream_options"] = {**object_of(options), "include_usage": True}
    else:
        body.pop("stream", None)
        body.pop("stream_options", None)
    return body


def parse(response: HttpResponse, dialect: Dialect) -> Answered:
    """The completion as it came. Raises Fault for one without choices, or with nothing but a refusal."""
    body = document(response, Phase.SUBMIT, dialect.table, synchronous=True)
    choices = [object_of(choice) for choice in list_of(body.get("choices"))]
    if body.get("error") or not choices or not all(isinstance(choice.get("message"), Mapping) for choice in choices):
        raise refused(response, Phase.SUBMIT, dialect.table, synchronous=True)
    if all(_only_refuses(choice["message"], choice.get("finish_reason")) for choice in choices):
        fault = refused(response, Phase.SUBMIT, dialect.table, synchronous=True)
        raise answered_so(fault, usage_of(body.get("usage")))
    report = Report(
        usage=usage_of(body.get("usage")),
        finish_reason=text_of(choices[0].get("finish_reason")),
        provider_request_id=response.headers.get(dialect.request_id) or text_of(body.get("id")),
        reported_cost=cost_of(body.get("usage")),
        model=text_of(body.get("model")),
    )
    return Answered(response.body, report, _unknown_in(body, choices, dialect))


_READ, _MADE = "prompt_tokens_details", "completion_tokens_details"
_Names = tuple[str, ...]


def _unknown_in(body: Mapping[str, Any], choices: list[Mapping[str, Any]], dialect: Dialect) -> _Names:
    """The fields that nobody accounts for. Completions come in a handful of shapes: each is looked through once."""
    usage = object_of(body.get("usage"))
    details = tuple(object_of(usage.get(_READ))), tuple(object_of(usage.get(_MADE)))
    said = tuple((tuple(choice), tuple(object_of(choice.get("message")))) for choice in choices)
    return _unknown_in_shape(tuple(body), said, tuple(usage), details, dialect.read_fields, dialect.ignored_fields)


@lru_cache(maxsize=256)
def _unknown_in_shape(
    names: _Names,
    choices: tuple[tuple[_Names, _Names], ...],
    usage: _Names,
    details: tuple[_Names, _Names],
    read: frozenset[str],
    ignored: frozenset[str],
) -> _Names:
    told = dict.fromkeys(usage) | {_READ: dict.fromkeys(details[0]), _MADE: dict.fromkeys(details[1])}
    said = [dict.fromkeys(choice) | {"message": dict.fromkeys(message)} for choice, message in choices]
    return unknown_fields("chat", dict.fromkeys(names) | {"choices": said, "usage": told}, read, ignored)


_SPOKEN = ("content", "tool_calls", "function_call", "reasoning_content", "reasoning", "audio")


def _only_refuses(message: Mapping[str, Any], finish_reason: Any) -> bool:
    """Nothing was said but that nothing will be said: not an output, a refusal of the request."""
    refused_so = finish_reason == "content_filter" or bool(message.get("refusal"))
    return refused_so and not any(message.get(name) for name in ("content", "tool_calls", "function_call", "audio"))


class _Choice(msgspec.Struct):
    index: Any = 0
    delta: Any = None
    finish_reason: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    id: Any = None
    model: Any = None
    usage: Any = None
    error: Any = None


_chunk = msgspec.json.Decoder(_Chunk)


class ChunkReader(EventStream):
    """Chunks pass through as they came. The chunk of the usage alone is kept back from who did not ask for it."""

    def __init__(self, job: Job, headers: Mapping[str, str], dialect: Dialect) -> None:
        super().__init__(headers)
        self.table = dialect.table
        self.told.provider_request_id = headers.get(dialect.request_id, "")
        self._dialect = dialect
        self._shapes: set[tuple[str, ...]] = set()
        wanted = job.input.get("n")
        self._wanted = wanted if isinstance(wanted, int) else 1
        self._wants_usage = bool(object_of(job.input.get("stream_options")).get("include_usage"))

    def take(self, event: Event) -> list[Piece]:
        """See EventStream.take."""
        data = event.data
        if data == DONE:
            self.ended = True
            return []
        chunk = _read(data)
        if chunk.error or event.name == "error":
            raise self.refusal(data)
        if chunk.usage is not None:
            self.told.usage, self.told.reported_cost = usage_of(chunk.usage), cost_of(chunk.usage)
        if not self.told.provider_request_id:
            self.told.provider_request_id = text_of(chunk.id)
        if not self.told.model:
            self.told.model = text_of(chunk.model)
        choices = chunk.choices or ()
        token = False
        for choice in choices:
            token = self._spoken(choice, data) or token
        if not choices and chunk.usage is not None and not self._wants_usage:
            return []
        return [Piece(data, token)]

    def _spoken(self, choice: _Choice, data: bytes) -> bool:
        """Whether the choice says something. A refusal in place of a first word is one of the request."""
        reason, delta = text_of(choice.finish_reason), object_of(choice.delta)
        index = choice.index if isinstance(choice.index, int) else 0
        if not self.spoke and (reason == "content_filter" or delta.get("refusal") or self.has_refused(index)):
            self.refuses(index, data, self._wanted)
            return False
        names = tuple(delta)
        if names not in self._shapes:  # a stream has a handful of shapes, and a thousand chunks
            self._shapes.add(names)
            self.note(unknown_fields("delta", delta, self._dialect.read_fields, self._dialect.ignored_fields))
        if reason:
            self.told.finish_reason = reason
            return True
        for name in _SPOKEN:  # a loop, not `any`: it is gone through for every piece
            if delta.get(name):
                return True
        return bool(delta.get("refusal"))


def _read(data: bytes) -> _Chunk:
    try:
        return _chunk.decode(data)
    except msgspec.DecodeError:
        return msgspec.convert(loaded(data), _Chunk)
