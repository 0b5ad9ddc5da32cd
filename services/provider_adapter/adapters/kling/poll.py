"""Asking Kling where a task stands. HTTP 200 with code 0 is an answer; everything else is a failed poll."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from services.provider_adapter.adapters.kling.faults import TABLE
from services.provider_adapter.adapters.kling.manifest import MANIFEST, route
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.judgement import judge_job
from services.provider_adapter.domain.outcomes import JobState, Made, Media, Polled
from services.provider_adapter.domain.replies import answered_at, chosen, document, list_of, object_of, refused, text_of


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that reads one task."""
    return HttpRequest("GET", f"{route(job)}/{quote(provider_task_id, safe='')}")


def parse(response: HttpResponse, job: Job) -> Polled:
    """Where the task stands. Raises Fault `poll_failed` or `malformed_reply`, which say nothing about it."""
    body = document(response, Phase.POLL, TABLE)
    task = object_of(body.get("data"))
    state = MANIFEST.states.get(text_of(task.get("task_status")).lower())
    if body.get("code") not in (0, None) or state is None:
        raise refused(response, Phase.POLL, TABLE)
    unknown = unknown_fields("task", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    made = _made(task) if state is JobState.SUCCEEDED else None
    if state is JobState.SUCCEEDED and made is None:
        state = JobState.FAILED  # a success without a result is the supply's failure, and is not paid for as a success
    if state is JobState.FAILED:
        said = {"error": {"message": text_of(task.get("task_status_msg"))}}
        return Polled(state, failure=judge_job(said, TABLE, answered_at(response)), unknown_fields=unknown)
    return Polled(state, made=made, unknown_fields=unknown)


def _made(task: Mapping[str, Any]) -> Made | None:
    videos = [object_of(item) for item in list_of(object_of(task.get("task_result")).get("videos"))]
    media = tuple(Media("video", url=text_of(item.get("url"))) for item in videos if text_of(item.get("url")))
    if not media:
        return None
    usage = chosen(task, "final_unit_deduction")
    with suppress(TypeError, ValueError):  # it is told as a text, or not at all
        usage["seconds"] = float(videos[0].get("duration") or "")
    return Made(media, {}, usage)
