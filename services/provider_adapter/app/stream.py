"""Makes one synchronous call, once, and hands its output on piece by piece.

Laws of this file (SYN-8):
- until the provider has said something, nothing is handed on: another supply may still serve;
- from then on an end that proves nothing is `stream_interrupted`, and an error of the provider is its own;
- who leaves takes the connection to the provider with him.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from libs.faults.fault import Fault
from libs.faults.registry import Category
from libs.kernel.clock import Clock
from services.provider_adapter.app.conversation import Conversation, Line
from services.provider_adapter.app.hiding import hiding
from services.provider_adapter.app.materials import Materials
from services.provider_adapter.app.operation import Operation
from services.provider_adapter.domain.calls import Piece, Report, StreamReader, Watch
from services.provider_adapter.domain.chunks import chunk_of
from services.provider_adapter.domain.exchange import Broken, ExchangeBroken, HttpResponse, Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outputs import readable
from services.provider_adapter.ports import Streaming


@dataclass(frozen=True, slots=True)
class Ended:
    """The stream ended as its provider meant it to."""

    report: Report
    first_token_s: float


@dataclass(slots=True)
class Progress:
    """How far a stream has come. `left_s` is what remains to the watchdog that waits: from the sending until the first
    token, then from the newest one, and only while the provider is waited for: a slow caller is no silence."""

    begun_s: float
    left_s: float
    inter_s: float
    first_token_s: float = 0.0
    pieces: int = 0

    def heard(self, now_s: float) -> None:
        """A token came."""
        self.left_s = self.inter_s
        self.first_token_s = self.first_token_s or now_s - self.begun_s


class StreamCall:
    """One request, its answer read as it comes, under two watchdogs."""

    def __init__(self, conversation: Conversation, materials: Materials, clock: Clock) -> None:
        self._conversation = conversation
        self._materials = materials
        self._clock = clock

    async def __call__(self, endpoint: Endpoint, job: Job, watch: Watch) -> AsyncGenerator[list[bytes] | Ended, None]:
        """Chunks, those together that came together, and at the very end the report. Raises Fault as InvokeCall does
        before the first chunk."""
        line = self._conversation.line(endpoint, job.kind)
        stream = line.adapter.streams(job.kind)
        submit_s = endpoint.timeouts.submit_s
        with hiding(job.input, line.secret), Operation(line, job, self._clock, streamed=True) as operation:
            request = stream.build(await self._materials.ready(job, line.adapter.manifest), endpoint)
            first_s, inter_s = watch.first_token_s or submit_s, watch.inter_token_s or submit_s
            progress = Progress(self._clock.monotonic(), first_s, inter_s)
            async with self._conversation.streaming(line, request, job, first_s) as answer:
                progress.left_s -= self._clock.monotonic() - progress.begun_s
                if answer.status != 200 or answer.headers.get("content-type", "").startswith("application/json"):
                    pieces = self._at_once(line, job, answer, progress)
                else:
                    pieces = self._told(line, stream.reader(job, answer.headers), answer, progress)
                async with aclosing(pieces):
                    async for piece in pieces:
                        if isinstance(piece, Ended):
                            operation.answered(piece.report, piece.first_token_s)
                        yield piece

    async def _at_once(
        self, line: Line, job: Job, answer: Streaming, progress: Progress
    ) -> AsyncGenerator[list[bytes] | Ended, None]:
        """An answer that is no stream: a refusal, or all of the output in one, from a server that does not stream."""
        wait_s = min(progress.left_s, self._conversation.time_left())
        response = HttpResponse(answer.status, answer.headers, await answer.rest(wait_s))
        answered = line.adapter.calls(job.kind).parse(response, job)
        self._conversation.notice(line, Phase.STREAM, answered.unknown_fields)
        spent_s = self._clock.monotonic() - progress.begun_s
        yield [chunk_of(readable(answered.output))]
        yield Ended(answered.report, spent_s)

    async def _told(
        self, line: Line, reader: StreamReader, answer: Streaming, progress: Progress
    ) -> AsyncGenerator[list[bytes] | Ended, None]:
        held: list[bytes] = []
        while not reader.ended:
            fault: Fault | None = None
            try:
                pieces, over = await self._read(reader, answer, progress)
            except ExchangeBroken as error:
                pieces, over, fault = [], True, self._conversation.broken(line, error)
            if chunks := self._handed_on(pieces, held, progress):
                yield chunks
            fault = reader.failure or fault
            if fault is None and over and not reader.ended:
                fault = reader.unfinished()
            if fault is not None:
                raise _after(progress.pieces, fault)
        if not progress.pieces:  # an end without a word and without a reason is no answer, and nobody has heard of it
            raise reader.unfinished()
        self._conversation.notice(line, Phase.STREAM, reader.unknown_fields)
        yield Ended(reader.report(), progress.first_token_s or self._clock.monotonic() - progress.begun_s)

    async def _read(self, reader: StreamReader, answer: Streaming, progress: Progress) -> tuple[list[Piece], bool]:
        """The next pieces, and whether the body is over."""
        wait_s = min(progress.left_s, self._conversation.time_left())
        if wait_s <= 0:
            raise ExchangeBroken(Broken.READ_TIMEOUT, answer.status)
        begun_s = self._clock.monotonic()
        data = await answer.read(wait_s)
        progress.left_s -= self._clock.monotonic() - begun_s
        return (reader.feed(data), False) if data else (reader.close(), True)

    def _handed_on(self, pieces: list[Piece], held: list[bytes], progress: Progress) -> list[bytes]:
        """The chunks to hand on now; what comes before the first token waits for it in `held`."""
        if any(piece.token for piece in pieces):
            progress.heard(self._clock.monotonic())
        elif not progress.pieces:
            held += [readable(piece.chunk) for piece in pieces]
            return []
        chunks = [*held, *(readable(piece.chunk) for piece in pieces)]
        held.clear()
        progress.pieces += len(chunks)
        return chunks


def _after(pieces: int, fault: Fault) -> Fault:
    """What a failure is after so many pieces: what the provider said of itself stands; what proves nothing is a stream
    that broke off."""
    if not pieces:
        return fault
    if fault.category is not Category.UNKNOWN:
        return fault.replaced(metadata={**fault.metadata, "possibly_charged": "true"})
    return Fault.of(
        "stream_interrupted",
        f"the stream broke off after {pieces} pieces",
        provider=fault.provider,
        provider_code=fault.provider_code,
        provider_message=fault.provider_message,
        metadata={**fault.metadata, "possibly_charged": "true"},
    )
