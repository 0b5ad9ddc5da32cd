"""Sends one job, once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from libs.faults.fault import Fault
from services.provider_adapter.app.conversation import Conversation, Line
from services.provider_adapter.app.hiding import hiding
from services.provider_adapter.app.materials import Materials
from services.provider_adapter.app.media import MediaWorks, NoMedia, NotFetched
from services.provider_adapter.app.operation import Operation
from services.provider_adapter.domain.answers import made_of
from services.provider_adapter.domain.calls import ANSWERED_KINDS, Answered, Report, usage_of_made
from services.provider_adapter.domain.exchange import HttpResponse, Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Made, Result, Submitted

T = TypeVar("T")
LARGE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Sent:
    """The job's id at the provider, or its result when it finished within the call."""

    provider_task_id: str = ""
    result: Result | None = None


class SubmitJob:
    """Materials, request, one exchange, and for synchronous kinds the result; of what is answered in words too."""

    def __init__(self, conversation: Conversation, materials: Materials, media: MediaWorks) -> None:
        self._conversation = conversation
        self._materials = materials
        self._media = media

    async def __call__(self, endpoint: Endpoint, job: Job) -> Sent:
        """Raises Fault: a refusal, `connect_failed` (nothing left), or `submission_unknown` (nobody knows)."""
        line = self._conversation.line(endpoint, job.kind)
        with hiding(job.input, line.secret), Operation(line, job, self._conversation.clock) as operation:
            if job.kind in ANSWERED_KINDS:
                answered = await self.answered(line, job)
                operation.answered(answered.report)
                made = await aside(len(answered.output), lambda: made_of(job.kind, answered, job.input))
                return Sent(result=await self.kept(made, line, job))
            submitted, _ = await self.sent(line, job)
            if submitted.made is None:
                return Sent(submitted.provider_task_id)
            operation.answered(Report(usage_of_made(submitted.made)))
            return Sent(submitted.provider_task_id, await self.kept(submitted.made, line, job))

    async def answered(self, line: Line, job: Job, first_s: float | None = None) -> Answered:
        """The exchange of a kind that is answered in JSON: its answer, read and in full."""
        call = line.adapter.calls(job.kind)
        ready = await self._materials.ready(job, line.adapter.manifest)
        sizes = [len(content.data) for content in ready.contents.values()]
        request = await aside(sum(sizes), lambda: call.build(ready, line.endpoint))
        response = await self._conversation.exchange(line, Phase.SUBMIT, request, job, first_s)
        answered = await aside(len(response.body), lambda: call.parse(response, job))
        self._conversation.notice(line, Phase.SUBMIT, answered.unknown_fields)
        return answered

    async def sent(self, line: Line, job: Job, first_s: float | None = None) -> tuple[Submitted, HttpResponse]:
        """The exchange alone: what the provider said, read and in full."""
        submit = line.adapter.submits(job.kind)
        if job.input.get("clips") and not line.adapter.manifest.joins_clips:
            raise Fault.invalid(("/input/clips", f"adapter '{line.endpoint.adapter}' joins no clips to a film"))
        ready = await self._materials.ready(job, line.adapter.manifest)
        sizes = [len(content.data) for content in ready.contents.values()]
        request = await aside(sum(sizes), lambda: submit.build(ready, line.endpoint))
        response = await self._conversation.exchange(line, Phase.SUBMIT, request, job, first_s)
        submitted = await aside(len(response.body), lambda: submit.parse(response, job))
        self._conversation.notice(line, Phase.SUBMIT, submitted.unknown_fields)
        return submitted, response

    async def kept(self, made: Made, line: Line, job: Job) -> Result:
        """What came with the answer, stored. Raises Fault with `possibly_charged` for what did not reach the store."""
        endpoint = line.endpoint
        try:
            return await self._media.kept(made, job, endpoint, self._conversation.door(line))
        except NotFetched as error:
            raise _lost("provider_error", endpoint, f"the result could not be fetched: {error}") from None
        except NoMedia as error:
            raise _lost("malformed_reply", endpoint, str(error)) from None
        except Fault as fault:  # our own store failed: the work is done and must not be done again unasked
            raise _lost("submission_unknown", endpoint, f"the result could not be kept: {fault.code}") from fault


async def aside(size: int, work: Callable[[], T]) -> T:
    """Pure work on `size` bytes: in a thread when it would hold up the others."""
    return work() if size < LARGE_BYTES else await asyncio.to_thread(work)


def _lost(code: str, endpoint: Endpoint, evidence: str) -> Fault:
    """A result that was made, and perhaps charged, but did not reach us."""
    return Fault.of(code, provider=endpoint.adapter, metadata={"evidence": evidence, "possibly_charged": "true"})
