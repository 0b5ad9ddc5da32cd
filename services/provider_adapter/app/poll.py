"""Asks where a job stands, and brings home what it made."""

from dataclasses import dataclass

from libs.faults.fault import Fault
from libs.telemetry import names
from libs.telemetry.spans import Kind, span
from services.provider_adapter.app.conversation import Conversation, Line
from services.provider_adapter.app.hiding import hidden, hiding
from services.provider_adapter.app.media import MediaWorks, NoMedia, NotFetched
from services.provider_adapter.app.operation import facts_of
from services.provider_adapter.domain.exchange import Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import JobState, Made, Result


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the job stands. `result` with SUCCEEDED, `failure` with FAILED."""

    state: JobState
    result: Result | None = None
    failure: Fault | None = None


class PollJob:
    """One question. Safe to repeat."""

    def __init__(self, conversation: Conversation, media: MediaWorks) -> None:
        self._conversation = conversation
        self._media = media

    async def __call__(self, endpoint: Endpoint, job: Job, provider_task_id: str) -> Standing:
        """Raises Fault when the question failed; that says nothing about the job."""
        line = self._conversation.line(endpoint, job.kind)
        poll = line.adapter.poll
        if poll is None:
            raise Fault.of("source_not_configured", f"adapter '{endpoint.adapter}' has no jobs to ask about")
        with hiding(job.input, line.secret), span(names.SPAN_POLL, facts_of(line, job), Kind.CLIENT):
            request = poll.build(job, endpoint, provider_task_id)
            response = await self._conversation.exchange(line, Phase.POLL, request, job)
            polled = poll.parse(response, job)
            self._conversation.notice(line, Phase.POLL, polled.unknown_fields)
            if polled.further is not None:
                response = await self._conversation.exchange(line, Phase.POLL, polled.further.request, job)
                polled = polled.further.parse(response, job)
                self._conversation.notice(line, Phase.POLL, polled.unknown_fields)
            if polled.made is not None:
                return await self._brought_home(line, job, polled.made)
            failure = polled.failure
            return Standing(polled.state, failure=failure and hidden(failure, job.input, line.secret))

    async def _brought_home(self, line: Line, job: Job, made: Made) -> Standing:
        provider = line.endpoint.adapter
        try:
            door = self._conversation.door(line)
            return Standing(JobState.SUCCEEDED, await self._media.kept(made, job, line.endpoint, door))
        except NotFetched as error:  # the job is done; its result may be there at the next poll
            metadata = {"evidence": f"media: {error}", "reason": "provider_error"}
            raise Fault.of("poll_failed", provider=provider, metadata=metadata) from None
        except Fault as fault:  # our own store failed
            metadata = {"evidence": "media: the result could not be kept", "reason": fault.code}
            raise Fault.of("poll_failed", provider=provider, metadata=metadata) from fault
        except NoMedia as error:  # a success with nothing usable is the supply's failure
            failure = Fault.of("malformed_reply", provider=provider, metadata={"evidence": f"media: {error}"})
            return Standing(JobState.FAILED, failure=failure)
