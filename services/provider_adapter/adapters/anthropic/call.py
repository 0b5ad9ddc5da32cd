"""One conversation sent to Anthropic, and its answer."""

from typing import Any

from services.provider_adapter.adapters.anthropic.answers import REASONS, message_of, usage_of
from services.provider_adapter.adapters.anthropic.faults import TABLE
from services.provider_adapter.adapters.anthropic.manifest import MANIFEST, MESSAGES, VERSION
from services.provider_adapter.adapters.anthropic.messages import conversation
from services.provider_adapter.adapters.anthropic.options import options
from services.provider_adapter.domain.calls import Answered, Report
from services.provider_adapter.domain.chunks import Head
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.inputs import encoded
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.replies import answered_at, document, object_of, refused, text_of


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request of one conversation. Raises Fault for what Anthropic has no words for."""
    return request_of(job, {})


def request_of(job: Job, more: dict[str, Any]) -> HttpRequest:
    """The request, with fields that only one way of asking has."""
    body = {"model": job.model, **conversation(job.input), **options(job.input, job.model)[0], **more}
    headers = {"content-type": "application/json", "anthropic-version": VERSION}
    return HttpRequest("POST", MESSAGES, headers=headers, body=encoded(body))


def parse(response: HttpResponse, job: Job) -> Answered:
    """The answer in OpenAI's shape. Raises Fault for a refusal without a word, and for what is no message."""
    body = document(response, Phase.SUBMIT, TABLE, synchronous=True)
    if not isinstance(body.get("content"), list) or not isinstance(body.get("stop_reason"), str):
        raise refused(response, Phase.SUBMIT, TABLE, synchronous=True)
    message, strange = message_of(body["content"])
    if body["stop_reason"] == "refusal" and not (message["content"] or message.get("tool_calls")):
        raise refused(response, Phase.SUBMIT, TABLE, synchronous=True)
    reason, usage = REASONS.get(body["stop_reason"], "stop"), usage_of(object_of(body.get("usage")))
    if body["stop_reason"] not in REASONS:
        strange = (*strange, f"message.stop_reason={body['stop_reason']}")
    head = Head(text_of(body.get("id")), text_of(body.get("model")), int(answered_at(response).timestamp()))
    output = head.completion([{"message": message, "finish_reason": reason}], usage)
    request_id, left_out = response.headers.get("request-id") or head.id, options(job.input, job.model)[1]
    report = Report(usage, reason, request_id, left_out, model=head.model)
    unknown = unknown_fields("message", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Answered(output, report, (*unknown, *strange))
