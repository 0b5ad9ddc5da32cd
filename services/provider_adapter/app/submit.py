"""Sends one job, once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from libs.faults.fault import Fault
from services.provider_adapter.app.conversation import Conversation
from services.provider_adapter.app.hiding import hiding
from services.provider_adapter.app.media import MediaWorks, NoMedia, NotFetched
from services.provider_adapter.domain.exchange import Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Result

T = TypeVar("T")
LARGE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Sent:
    """The job's id at the provider, or its result when it finished within the call."""

    provider_task_id: str = ""
    result: Result | None = None


class SubmitJob:
    """Materials, request, one exchange, and for synchronous kinds the result."""

    def __init__(self, conversation: Conversation, media: MediaWorks) -> None:
        self._conversation = conversation
        self._media = media

    async def __call__(self, endpoint: Endpoint, job: Job) -> Sent:
        """Raises Fault: a refusal, `connect_failed` (nothing left), or `submission_unknown` (nobody knows)."""
        line = self._conversation.line(endpoint, job.kind)
        with hiding(job.input, line.secret):
            ready = await self._media.with_contents(job)
            sizes = [len(content.data) for content in ready.contents.values()]
            request = await _aside(sum(sizes), lambda: line.adapter.submit.build(ready, endpoint))
            response = await self._conversation.exchange(line, Phase.SUBMIT, request, job)
            submitted = await _aside(len(response.body), lambda: line.adapter.submit.parse(response, job))
            self._conversation.notice(line, Phase.SUBMIT, submitted.unknown_fields)
            if submitted.made is None:
                return Sent(submitted.provider_task_id)
            try:
                result = await self._media.kept(submitted.made, job, endpoint, self._conversation.door(line))
            except NotFetched as error:
                raise _lost("provider_error", endpoint, f"the result could not be fetched: {error}") from None
            except NoMedia as error:
                raise _lost("malformed_reply", endpoint, str(error)) from None
            except Fault as fault:  # our own store failed: the work is done and must not be done again unasked
                raise _lost("submission_unknown", endpoint, f"the result could not be kept: {fault.code}") from fault
            return Sent(submitted.provider_task_id, result)


async def _aside(size: int, work: Callable[[], T]) -> T:
    """Pure work on `size` bytes: in a thread when it would hold up the others."""
    return work() if size < LARGE_BYTES else await asyncio.to_thread(work)


def _lost(code: str, endpoint: Endpoint, evidence: str) -> Fault:
    """A result that was made, and perhaps charged, but did not reach us."""
    return Fault.of(code, provider=endpoint.adapter, metadata={"evidence": evidence, "possibly_charged": "true"})
