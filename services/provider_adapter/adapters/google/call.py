"""One conversation sent to Gemini, or texts to be embedded, and the answer."""

from collections.abc import Mapping
from typing import Any

from services.provider_adapter.adapters.google import embeddings
from services.provider_adapter.adapters.google.answers import message_of, reason_of, usage_of
from services.provider_adapter.adapters.google.contents import conversation
from services.provider_adapter.adapters.google.faults import TABLE
from services.provider_adapter.adapters.google.manifest import MANIFEST, model_path
from services.provider_adapter.adapters.google.options import options
from services.provider_adapter.domain.calls import Answered, Report
from services.provider_adapter.domain.chunks import Head
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.inputs import encoded
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.replies import answered_at, document, list_of, object_of, refused, text_of

_JSON = {"content-type": "application/json"}


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request of one call. Raises Fault for what Gemini has no words for."""
    if job.kind == "embedding":
        path, body = model_path(job.model, "batchEmbedContents"), embeddings.body_of(job)
        return HttpRequest("POST", path, headers=_JSON, body=encoded(body))
    return request_of(job, "generateContent", ())


def request_of(job: Job, action: str, query: tuple[tuple[str, str], ...]) -> HttpRequest:
    """The request of one conversation, by one of its two ways."""
    body = {**conversation(job.input), **options(job.input, job.model)[0]}
    return HttpRequest("POST", model_path(job.model, action), query, _JSON, encoded(body))


def parse(response: HttpResponse, job: Job) -> Answered:
    """The answer in OpenAI's shape. Raises Fault for a prompt that was blocked, and for an answer that broke off."""
    if job.kind == "embedding":
        return embeddings.parse(response, job)
    body = document(response, Phase.SUBMIT, TABLE, synchronous=True)
    candidates = [object_of(candidate) for candidate in list_of(body.get("candidates"))]
    head = head_of(body, job, response)
    choices = [_choice(candidate, head.id) for candidate in candidates]
    whole = [choice for choice in choices if choice["finish_reason"] and not _blank_refusal(choice)]
    if not whole:
        raise refused(response, Phase.SUBMIT, TABLE, synchronous=True)
    usage = usage_of(object_of(body.get("usageMetadata")))
    left_out = options(job.input, job.model)[1]
    report = Report(usage, whole[0]["finish_reason"], head.id, left_out, model=head.model)
    unknown = unknown_fields("answer", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Answered(head.completion(whole, usage), report, unknown)


def head_of(body: Mapping[str, Any], job: Job, response: HttpResponse) -> Head:
    """What every piece of this answer repeats."""
    model = text_of(body.get("modelVersion")) or job.model
    return Head(text_of(body.get("responseId")), model, int(answered_at(response).timestamp()))


def _choice(candidate: Mapping[str, Any], response_id: str) -> dict[str, Any]:
    message = message_of(candidate, response_id)
    reason = reason_of(text_of(candidate.get("finishReason")), calls="tool_calls" in message)
    return {"message": message, "finish_reason": reason}


def _blank_refusal(choice: Mapping[str, Any]) -> bool:
    message = choice["message"]
    return choice["finish_reason"] == "content_filter" and not (message["content"] or message.get("tool_calls"))
