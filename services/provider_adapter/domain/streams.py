"""What every reader of a stream does alike: events to pieces, failures kept until the pieces before them are given."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import msgspec

from libs.faults.fault import Fault
from services.provider_adapter.domain.calls import Piece, Report, Told
from services.provider_adapter.domain.events import Event, EventReader, TooLong
from services.provider_adapter.domain.exchange import Broken, HttpResponse, Phase, Reply
from services.provider_adapter.domain.fields import LIMIT
from services.provider_adapter.domain.judgement import judge
from services.provider_adapter.domain.replies import answered_at, answered_so, refused
from services.provider_adapter.domain.table import FaultTable

_CUT, _SILENT = "the stream ended before its last event", "the stream ended without a word"


class EventStream(ABC):
    """A StreamReader over server-sent events. A dialect says in `take` what one event gives."""

    table: FaultTable

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.ended = False
        self.failure: Fault | None = None
        self.unknown_fields: tuple[str, ...] = ()
        self.spoke = False
        self.told = Told()
        self._headers = headers
        self._events = EventReader()
        self._last = b""
        self._refused: dict[int, bytes] = {}

    @abstractmethod
    def take(self, event: Event) -> list[Piece]:
        """The pieces of one event; sets `ended`, and raises Fault (or a decoding error) for one that is no good."""

    def feed(self, data: bytes) -> list[Piece]:
        """See StreamReader."""
        try:
            return self._taken(self._events.feed(data))
        except TooLong:
            self.failure = Fault.of(
                "malformed_reply", provider=self.table.provider, metadata={"evidence": "one event has no end"}
            )
            return []

    def close(self) -> list[Piece]:
        """See StreamReader."""
        return self._taken(self._events.close())

    def report(self) -> Report:
        """See StreamReader."""
        return self.told.report()

    def unfinished(self) -> Fault:
        """See StreamReader. An event that carried no output may hold the reason."""
        reply = Reply.broken_off(self._headers, Broken.INCOMPLETE_BODY)
        for event in (*reversed(self._refused.values()), self._last) if not self.spoke else ():
            fault = self.refusal(event)
            if event and fault.code != "malformed_reply":
                return answered_so(fault, self.told.usage) if event in self._refused.values() else fault
        fault = judge(reply, Phase.STREAM, self.table, answered_at(HttpResponse(200, self._headers)))
        return fault.replaced(metadata={"evidence": _SILENT if self.ended else _CUT})

    def refuses(self, index: int, data: bytes, wanted: int) -> None:
        """A choice ends without a word, by this event. Raises Fault once that is so of all that were asked for; while
        another may still speak, it is an output like any other, as in an answer that comes whole."""
        self._refused[index] = data
        if len(self._refused) >= wanted:
            raise answered_so(self.refusal(data), self.told.usage)

    def has_refused(self, index: int) -> bool:
        """Whether `refuses` was told of that choice."""
        return index in self._refused

    def note(self, unknown: tuple[str, ...]) -> None:
        """Keep the names of fields that nobody accounts for, each once."""
        if unknown:
            self.unknown_fields = tuple(dict.fromkeys((*self.unknown_fields, *unknown)))[:LIMIT]

    def refusal(self, data: bytes) -> Fault:
        """The fault that an event which is no output proves."""
        return refused(HttpResponse(200, self._headers, data), Phase.STREAM, self.table, synchronous=True)

    def _taken(self, events: list[Event]) -> list[Piece]:
        pieces: list[Piece] = []
        for event in events:
            if self.ended or self.failure is not None:
                break
            try:
                made = self.take(event)
            except Fault as fault:
                self.failure = fault
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                self.failure = self.refusal(event.data)
            else:
                self.spoke = self.spoke or any(piece.token for piece in made)
                if not self.ended:  # the mark of the end tells nothing
                    self._last = event.data
                pieces += made
        return pieces
