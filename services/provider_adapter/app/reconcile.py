"""Asks a provider about a submission that was not answered: its records, or by the same request under the same key."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from libs.telemetry import names
from libs.telemetry.spans import Kind, span
from services.provider_adapter.app.conversation import Conversation, Line
from services.provider_adapter.app.hiding import hiding
from services.provider_adapter.app.operation import facts_of
from services.provider_adapter.app.submit import SubmitJob
from services.provider_adapter.domain.adapter import KEY, LOOKUP, Page, Reconcile
from services.provider_adapter.domain.exchange import Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Listed, Reconciled, Verdict
from services.provider_adapter.domain.reconciliation import Submission, complete, verdict, verdict_of_refusal
from services.provider_adapter.domain.replies import ahead_s
from services.provider_adapter.settings import Settings

Now = Callable[[], datetime | None]


class ReconcileJob:
    """Reads records page by page until they tell, within a bound; or sends the same again, which a server that honours
    our key answers with the job that it has. Safe to repeat: neither way makes a second job."""

    def __init__(self, conversation: Conversation, submit: SubmitJob, clock: Clock, settings: Settings) -> None:
        self._conversation = conversation
        self._submit = submit
        self._clock = clock
        self._settings = settings

    async def __call__(
        self,
        endpoint: Endpoint,
        job: Job,
        sent_at: datetime,
        latest: datetime | None = None,
        records_only: bool = False,
        silent_s: float | None = None,
        asked_at: datetime | None = None,
    ) -> Reconciled:
        """The verdict. A question that failed is UNKNOWN with the reason; Fault only for a broken configuration.

        Where it is not known when it was sent, `latest` is the latest that it can have been; where it is not known
        whether, `records_only`: a server that does not have it would take the same again as new. `silent_s` as in
        `Submission`; `asked_at`: the time of now by the clock that wrote the others.
        """
        line = self._conversation.line(endpoint, job.kind)
        latest_s = (latest or sent_at).timestamp()
        slow_s = 0.0 if asked_at is None or records_only else max((asked_at - sent_at).total_seconds(), 0.0)
        submission = Submission(sent_at.timestamp(), endpoint.timeouts.submit_s, latest_s, silent_s, slow_s=slow_s)
        now = self._goes_on(asked_at)
        way = line.adapter.reconciles_by(endpoint)
        if way == KEY and not records_only:
            return await self._sent_again(line, job, submission)
        if way == KEY:
            way = line.adapter.manifest.reconcile_by
        reconcile = line.adapter.reconcile
        if reconcile is None or job.kind in line.adapter.manifest.synchronous_kinds:
            return _no_records(line)
        return await self._looked_up(line, reconcile, job, submission, way, now)

    def _goes_on(self, asked_at: datetime | None) -> Now:
        """The caller's clock, as it goes on from the moment of the question; None where it told none."""
        if asked_at is None:
            return lambda: None
        began, at = self._clock.monotonic(), asked_at
        return lambda: at + timedelta(seconds=self._clock.monotonic() - began)

    async def _sent_again(self, line: Line, job: Job, submission: Submission) -> Reconciled:
        sent_s = self._clock.now().timestamp()
        try:
            sent = await self._submit(line.endpoint, job)
        except Fault as fault:
            if fault.code == "source_not_configured":
                raise
            return verdict_of_refusal(fault, submission, sent_s, self._settings.settle_s)
        return Reconciled(Verdict.ACCEPTED, sent.provider_task_id, "same key again: it has the job", sent.result)

    async def _looked_up(
        self, line: Line, reconcile: Reconcile, job: Job, submission: Submission, way: str, now: Now
    ) -> Reconciled:
        most_pages = 1 if way == LOOKUP else self._settings.reconcile_pages
        read_s = self._clock.now().timestamp()
        pages: list[Listed] = []
        try:
            with hiding(job.input, line.secret), span(names.SPAN_RECONCILE, facts_of(line, job), Kind.CLIENT):
                for number in range(1, most_pages + 1):
                    page = Page(number, pages[-1].after if pages else "")
                    request = reconcile.build(job, line.endpoint, page)
                    if request is None:
                        return _no_records(line)
                    response = await self._conversation.exchange(line, Phase.RECONCILE, request, job)
                    submission = replace(submission, ahead_s=max(submission.ahead_s, ahead_s(response, now())))
                    pages.append(reconcile.parse(response, job))
                    self._conversation.notice(line, Phase.RECONCILE, pages[-1].unknown_fields)
                    if pages[-1].found or complete(pages, submission):
                        break
        except Fault as fault:
            if fault.code == "source_not_configured":
                raise
            reason = fault.metadata.get("reason", fault.code)
            return Reconciled(Verdict.UNKNOWN, evidence=f"the records could not be read: {reason}")
        return verdict(pages, submission, read_s, self._settings.settle_s, way)


def _no_records(line: Line) -> Reconciled:
    return Reconciled(Verdict.UNKNOWN, evidence=f"adapter '{line.endpoint.adapter}' keeps no records to ask")
