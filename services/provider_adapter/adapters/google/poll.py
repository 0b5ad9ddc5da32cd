"""Asking where a clip of Veo stands. Its file is fetched with the channel's own key; Google keeps it for two days."""

from collections.abc import Mapping
from typing import Any

from services.provider_adapter.adapters.google.faults import TABLE
from services.provider_adapter.adapters.google.manifest import MANIFEST, operation_path
from services.provider_adapter.adapters.google.submit import seconds_of
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.judgement import judge_job
from services.provider_adapter.domain.outcomes import JobState, Made, Media, Polled
from services.provider_adapter.domain.replies import answered_at, document, list_of, object_of, refused, text_of


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that reads one operation."""
    return HttpRequest("GET", operation_path(provider_task_id))


def parse(response: HttpResponse, job: Job) -> Polled:
    """Where the clip stands. Raises Fault `poll_failed` or `malformed_reply`, which say nothing about it."""
    operation = document(response, Phase.POLL, TABLE)
    if not isinstance(operation.get("name"), str) and "done" not in operation:
        raise refused(response, Phase.POLL, TABLE)
    unknown = unknown_fields("operation", operation, MANIFEST.read_fields, MANIFEST.ignored_fields)
    if operation.get("done") is not True:
        return Polled(JobState.RUNNING, unknown_fields=unknown)
    made = None if operation.get("error") else _made(operation, job)
    if made is None:
        failure = judge_job(_reason(operation), TABLE, answered_at(response))
        return Polled(JobState.FAILED, failure=failure, unknown_fields=unknown)
    return Polled(JobState.SUCCEEDED, made=made, unknown_fields=unknown)


def _made(operation: Mapping[str, Any], job: Job) -> Made | None:
    samples = list_of(_result(operation).get("generatedSamples"))
    urls = [text_of(object_of(object_of(sample).get("video")).get("uri")) for sample in samples]
    media = tuple(Media("video", url=url, keyed=True) for url in urls if url)
    return Made(media, usage={"seconds": seconds_of(job) * len(media)}) if media else None


def _result(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    return object_of(object_of(operation.get("response")).get("generateVideoResponse"))


def _reason(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    """Why there is no clip. Operations tell codes of google.rpc by number: their names stand in our table."""
    error = object_of(operation.get("error"))
    if not error:
        return _result(operation)
    number = error.get("code")
    return {**error, "status": _RPC.get(number, "") if isinstance(number, int) else ""}


_RPC = {
    1: "CANCELLED", 3: "INVALID_ARGUMENT", 4: "DEADLINE_EXCEEDED", 5: "NOT_FOUND", 7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED", 9: "FAILED_PRECONDITION", 13: "INTERNAL", 14: "UNAVAILABLE", 16: "UNAUTHENTICATED",
}  # fmt: skip
