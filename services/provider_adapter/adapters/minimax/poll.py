"""Asking MiniMax where a task stands.

The first interface tells a state and, with success, the id of a file, whose URL is the answer to a second question. The
second tells everything at once. `Fail` may stand beside a `base_resp` of 0: then the task failed without a reason.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from services.provider_adapter.adapters.minimax.faults import TABLE
from services.provider_adapter.adapters.minimax.manifest import (
    FILES,
    FIRST_QUERY,
    MANIFEST,
    SECOND_QUERY,
    accepted,
    second,
)
from services.provider_adapter.adapters.minimax.submit import length_of
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.judgement import judge_job
from services.provider_adapter.domain.outcomes import Further, JobState, Made, Media, Polled
from services.provider_adapter.domain.replies import (
    answered_at,
    chosen,
    document,
    number_of,
    object_of,
    refused,
    text_of,
)

_OUTPUT = ("resolution", "ratio", "duration")


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that reads one task."""
    if second(job):
        return HttpRequest("GET", f"{SECOND_QUERY}/{quote(provider_task_id, safe='')}")
    return HttpRequest("GET", FIRST_QUERY, query=(("task_id", provider_task_id),))


def parse(response: HttpResponse, job: Job) -> Polled:
    """Where the task stands. Raises Fault `poll_failed` or `malformed_reply`, which say nothing about it."""
    body = document(response, Phase.POLL, TABLE)
    task = object_of(body.get("task")) if second(job) else body
    state = MANIFEST.states.get(text_of(task.get("status")).lower())
    if state is None or not (accepted(body.get("base_resp")) or state is JobState.FAILED):
        raise refused(response, Phase.POLL, TABLE)
    unknown = unknown_fields("task", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    if state is JobState.SUCCEEDED:
        done = _made(task) if second(job) else _file(task, job)
        if done is not None:
            made, further = (done, None) if isinstance(done, Made) else (None, done)
            return Polled(state, made=made, further=further, unknown_fields=unknown)
        state = JobState.FAILED  # a success without a result is the supply's failure, and is not paid for as a success
    if state is JobState.FAILED:
        return Polled(state, failure=judge_job(body, TABLE, answered_at(response)), unknown_fields=unknown)
    return Polled(state, unknown_fields=unknown)


def _made(task: Mapping[str, Any]) -> Made | None:
    url = text_of(object_of(task.get("content")).get("url"))
    if not url:
        return None
    usage = dict(object_of(task.get("usage")))
    seconds = number_of(usage.get("output_seconds"))
    if seconds is None:
        seconds = number_of(task.get("duration"))
    if seconds is not None:
        usage["seconds"] = seconds
    return Made((Media("video", url=url),), chosen(task, *_OUTPUT), usage)


def _file(task: Mapping[str, Any], job: Job) -> Further | None:
    """The question for the file of a finished task; its id is now a text, now a number."""
    file_id = task.get("file_id")
    if isinstance(file_id, bool) or not isinstance(file_id, str | int) or not file_id:
        return None
    size = chosen(task, "video_width", "video_height")
    asked = length_of(job)  # it is what was made and is charged; the reply does not say it again
    usage = {} if asked is None else {"seconds": asked}

    def found(response: HttpResponse, job: Job) -> Polled:
        body = document(response, Phase.POLL, TABLE)
        url = text_of(object_of(body.get("file")).get("download_url"))
        if not url or not accepted(body.get("base_resp")):
            raise refused(response, Phase.POLL, TABLE)
        unknown = unknown_fields("file", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
        return Polled(JobState.SUCCEEDED, made=Made((Media("video", url=url),), size, usage), unknown_fields=unknown)

    return Further(HttpRequest("GET", FILES, query=(("file_id", str(file_id)),)), found)
