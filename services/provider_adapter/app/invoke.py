"""Makes one synchronous call, once."""

from typing import Any

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from services.provider_adapter.app.conversation import Conversation, Line
from services.provider_adapter.app.hiding import hiding
from services.provider_adapter.app.operation import Operation
from services.provider_adapter.app.submit import SubmitJob
from services.provider_adapter.domain.calls import ANSWERED_KINDS, Invoked, Report, Watch, usage_of_made
from services.provider_adapter.domain.inputs import encoded
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Result
from services.provider_adapter.domain.outputs import readable


class InvokeCall:
    """Materials, request, one exchange, the output. Kinds that give files go the way of a submission."""

    def __init__(self, conversation: Conversation, submit: SubmitJob, clock: Clock) -> None:
        self._conversation = conversation
        self._submit = submit
        self._clock = clock

    async def __call__(self, endpoint: Endpoint, job: Job, watch: Watch) -> Invoked:
        """Raises Fault: a refusal, `connect_failed` (nothing left), or `submission_unknown` (nobody knows)."""
        line = self._conversation.line(endpoint, job.kind)
        if job.kind not in line.adapter.manifest.synchronous_kinds:
            raise Fault.of("source_not_configured", f"kind '{job.kind}' of adapter '{endpoint.adapter}' is not a call")
        with hiding(job.input, line.secret), Operation(line, job, self._clock) as operation:
            served = self._answered if job.kind in ANSWERED_KINDS else self._made
            invoked = await served(line, job, watch)
            operation.answered(invoked.report)
            return invoked

    async def _answered(self, line: Line, job: Job, watch: Watch) -> Invoked:
        begun = self._clock.monotonic()
        answered = await self._submit.answered(line, job, watch.first_token_s)
        spent_s = self._clock.monotonic() - begun
        return Invoked(readable(answered.output), answered.report, first_token_s=spent_s)

    async def _made(self, line: Line, job: Job, watch: Watch) -> Invoked:
        begun = self._clock.monotonic()
        submitted, response = await self._submit.sent(line, job, watch.first_token_s)
        spent_s = self._clock.monotonic() - begun
        if submitted.made is None:
            raise Fault.of("malformed_reply", provider=line.endpoint.adapter, metadata={"evidence": "a job, no result"})
        result = await self._submit.kept(submitted.made, line, job)
        report = Report(usage_of_made(submitted.made), provider_request_id=request_id(response.headers))
        return Invoked(encoded(_output(result)), report, result.artifacts, spent_s)


def _output(result: Result) -> dict[str, Any]:
    """What is no file: one entry of `data` for each artifact, in order, and what the provider said beside them."""
    beside = dict(result.output)
    prompts = beside.pop("revised_prompts", ())
    data = [{"artifact": item.sha256, "media_type": item.media_type} for item in result.artifacts]
    for item, prompt in zip(data, prompts, strict=False):
        if prompt:
            item["revised_prompt"] = prompt
    return {**beside, "data": data}


_IDS = ("x-request-id", "apim-request-id", "request-id", "x-tt-logid")


def request_id(headers: Any) -> str:
    """The provider's own id of an exchange, from the headers under which providers put it."""
    return next((headers[name] for name in _IDS if headers.get(name)), "")
