"""Asking Replicate where a prediction stands. HTTP 200 is an answer, whatever became of the prediction."""

from collections.abc import Iterator, Mapping
from typing import Any

from services.provider_adapter.adapters.replicate.faults import TABLE
from services.provider_adapter.adapters.replicate.manifest import MANIFEST, prediction
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.judgement import judge_job
from services.provider_adapter.domain.outcomes import JobState, Made, Media, Polled
from services.provider_adapter.domain.replies import answered_at, chosen, document, object_of, refused, text_of

_USAGE = ("predict_time", "total_time", "image_count", "video_output_duration_seconds")


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that reads one prediction."""
    return HttpRequest("GET", prediction(provider_task_id))


def parse(response: HttpResponse, job: Job) -> Polled:
    """Where the prediction stands. Raises Fault `poll_failed` or `malformed_reply`, which say nothing about it."""
    body = document(response, Phase.POLL, TABLE)
    state = MANIFEST.states.get(text_of(body.get("status")).lower())
    if state is None:
        raise refused(response, Phase.POLL, TABLE)
    unknown = unknown_fields("task", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    media = tuple(Media(job.kind, url=url) for url in _urls(body.get("output")))
    if state is JobState.SUCCEEDED and not media:
        state = JobState.FAILED  # a success without a result is the supply's failure, and is not paid for as a success
    if state is JobState.FAILED:
        said = {"status": body.get("status"), "error": body.get("error")}
        return Polled(state, failure=judge_job(said, TABLE, answered_at(response)), unknown_fields=unknown)
    made = Made(media, {}, _usage(body)) if state is JobState.SUCCEEDED else None
    return Polled(state, made=made, unknown_fields=unknown)


def _urls(output: Any) -> Iterator[str]:
    """The addresses in an output: one, a list of them, or an object of them, as the model likes."""
    if isinstance(output, str):
        if output.startswith(("http://", "https://")):
            yield output
    elif isinstance(output, list):
        for item in output:
            yield from _urls(item)
    elif isinstance(output, Mapping):
        for item in output.values():
            yield from _urls(item)


def _usage(body: Mapping[str, Any]) -> dict[str, Any]:
    metrics = object_of(body.get("metrics"))
    usage = chosen(metrics, *_USAGE)
    return usage | chosen({"seconds": metrics.get("video_output_duration_seconds")}, "seconds")
