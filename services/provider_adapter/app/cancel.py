"""Asks a provider to stop a job."""

from libs.faults.fault import Fault
from libs.telemetry import names
from libs.telemetry.spans import Kind, span
from services.provider_adapter.app.conversation import Conversation
from services.provider_adapter.app.hiding import hiding
from services.provider_adapter.app.operation import facts_of
from services.provider_adapter.domain.exchange import Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Cancelled


class CancelJob:
    """One request, sent once: where cancelling and deleting are one call, a second would do something else."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def __call__(self, endpoint: Endpoint, job: Job, provider_task_id: str) -> Cancelled:
        """Whether the job will not run to its end. Raises Fault `poll_failed` when the provider does not say."""
        line = self._conversation.line(endpoint, job.kind)
        cancel = line.adapter.cancel
        if cancel is None:
            return Cancelled(False)
        with hiding(job.input, line.secret), span(names.SPAN_CANCEL, facts_of(line, job), Kind.CLIENT):
            request = cancel.build(job, endpoint, provider_task_id)
            if request is None:
                return Cancelled(False)
            response = await self._conversation.exchange(line, Phase.CANCEL, request, job)
            try:
                return cancel.parse(response, job)
            except Fault as fault:
                if fault.metadata.get("reason") == "task_lost":  # there is nothing left that could run
                    return Cancelled(True)
                raise
