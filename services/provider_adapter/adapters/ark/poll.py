"""Asking Ark where a video task stands.

HTTP 200 is an answer, whatever became of the task; everything else is a failed poll.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from services.provider_adapter.adapters.ark.faults import TABLE
from services.provider_adapter.adapters.ark.manifest import MANIFEST, TASKS
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.judgement import judge_job
from services.provider_adapter.domain.outcomes import JobState, Made, Media, Polled
from services.provider_adapter.domain.replies import answered_at, chosen, document, object_of, refused, text_of

_OUTPUT = ("seed", "resolution", "ratio", "duration", "frames", "framespersecond", "generate_audio")


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that reads one task."""
    return HttpRequest("GET", f"{TASKS}/{quote(provider_task_id, safe='')}")


def parse(response: HttpResponse, job: Job) -> Polled:
    """Where the task stands. Raises Fault `poll_failed` or `malformed_reply`, which say nothing about it."""
    task = document(response, Phase.POLL, TABLE)
    state = MANIFEST.states.get(text_of(task.get("status")).lower())
    if state is None:
        raise refused(response, Phase.POLL, TABLE)
    unknown = unknown_fields("task", task, MANIFEST.read_fields, MANIFEST.ignored_fields)
    if state is JobState.SUCCEEDED:
        url = text_of(object_of(task.get("content")).get("video_url"))
        if not url:  # a success without a result is the supply's failure, and is not paid for as a success
            state = JobState.FAILED
        else:
            return Polled(state, made=_made(task, url), unknown_fields=unknown)
    if state is JobState.FAILED:
        return Polled(state, failure=judge_job(task, TABLE, answered_at(response)), unknown_fields=unknown)
    return Polled(state, unknown_fields=unknown)


def _made(task: Mapping[str, Any], url: str) -> Made:
    usage = dict(chosen(object_of(task.get("usage")), "completion_tokens", "total_tokens"))
    if task.get("duration") is not None:
        usage["seconds"] = task["duration"]
    return Made((Media("video", url=url),), chosen(task, *_OUTPUT), usage)
