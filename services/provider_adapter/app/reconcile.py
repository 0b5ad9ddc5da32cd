"""Asks a provider's records about a submission that was not answered."""

from datetime import datetime

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from services.provider_adapter.app.conversation import Conversation
from services.provider_adapter.app.hiding import hiding
from services.provider_adapter.domain.exchange import Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Listed, Reconciled, Verdict
from services.provider_adapter.domain.reconciliation import Submission, complete, verdict
from services.provider_adapter.settings import Settings


class ReconcileJob:
    """Reads records page by page until they tell, within a bound. Only reads; safe to repeat."""

    def __init__(self, conversation: Conversation, clock: Clock, settings: Settings) -> None:
        self._conversation = conversation
        self._clock = clock
        self._settings = settings

    async def __call__(self, endpoint: Endpoint, job: Job, sent_at: datetime) -> Reconciled:
        """The verdict. A question that failed is UNKNOWN with the reason; Fault only for a broken configuration."""
        line = self._conversation.line(endpoint, job.kind)
        reconcile = line.adapter.reconcile
        if reconcile is None or job.kind in line.adapter.manifest.synchronous_kinds:
            return Reconciled(Verdict.UNKNOWN, evidence=f"adapter '{endpoint.adapter}' keeps no records to ask")
        submission = Submission(sent_at.timestamp(), endpoint.timeouts.submit_s)
        read_s = self._clock.now().timestamp()
        pages: list[Listed] = []
        try:
            with hiding(job.input, line.secret):
                for number in range(1, self._settings.reconcile_pages + 1):
                    request = reconcile.build(job, endpoint, number)
                    response = await self._conversation.exchange(line, Phase.RECONCILE, request, job)
                    pages.append(reconcile.parse(response, job))
                    self._conversation.notice(line, Phase.RECONCILE, pages[-1].unknown_fields)
                    if pages[-1].found or complete(pages, submission):
                        break
        except Fault as fault:
            if fault.code == "source_not_configured":
                raise
            reason = fault.metadata.get("reason", fault.code)
            return Reconciled(Verdict.UNKNOWN, evidence=f"the records could not be read: {reason}")
        return verdict(pages, submission, read_s, self._settings.settle_s)
