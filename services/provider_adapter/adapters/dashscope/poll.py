"""Asking DashScope where a task stands. HTTP 200 is an answer, whatever became of the task.

UNKNOWN is the state of a task that does not exist, or whose day is over: it is lost, which says nothing of what became
of it.
"""

from collections.abc import Mapping
from typing import Any

from services.provider_adapter.adapters.dashscope.faults import TABLE
from services.provider_adapter.adapters.dashscope.manifest import MANIFEST, task
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.judgement import judge_job
from services.provider_adapter.domain.outcomes import JobState, Made, Media, Polled
from services.provider_adapter.domain.replies import answered_at, chosen, document, list_of, object_of, refused, text_of

_USAGE = ("duration", "output_video_duration", "input_video_duration", "video_count", "SR", "ratio", "image_count")


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that reads one task."""
    return HttpRequest("GET", task(provider_task_id))


def parse(response: HttpResponse, job: Job) -> Polled:
    """Where the task stands. Raises Fault `poll_failed` or `malformed_reply`, which say nothing about it."""
    body = document(response, Phase.POLL, TABLE)
    output = object_of(body.get("output"))
    state = MANIFEST.states.get(text_of(output.get("task_status")).upper())
    if state is None:
        raise refused(response, Phase.POLL, TABLE)
    unknown = unknown_fields("task", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    made = _made(output, object_of(body.get("usage")), job.kind) if state is JobState.SUCCEEDED else None
    if state is JobState.SUCCEEDED and made is None:
        state = JobState.FAILED  # a success without a result is the supply's failure, and is not paid for as a success
    if state is JobState.FAILED:
        said = chosen(output, "code", "message", "results")
        return Polled(state, failure=judge_job(said, TABLE, answered_at(response)), unknown_fields=unknown)
    return Polled(state, made=made, unknown_fields=unknown)


def _made(output: Mapping[str, Any], told: Mapping[str, Any], kind: str) -> Made | None:
    """A task with several pictures succeeds when one of them does; the others say why they failed."""
    pieces = [object_of(item) for item in list_of(output.get("results"))]
    urls = [text_of(output.get("video_url")), *(text_of(piece.get("url")) for piece in pieces)]
    media = tuple(Media(kind, url=url) for url in urls if url)
    if not media:
        return None
    refusals = [text_of(piece.get("code")) for piece in pieces if piece.get("code")]
    usage = chosen(told, *_USAGE)
    seconds = told.get("output_video_duration", told.get("duration"))
    return Made(media, {"refused": refusals} if refusals else {}, usage | chosen({"seconds": seconds}, "seconds"))
