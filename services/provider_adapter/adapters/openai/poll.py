"""Asking where a clip stands. Its bytes are at an address of the same API, which only the channel's key opens."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from services.provider_adapter.adapters.openai.faults import TABLE
from services.provider_adapter.adapters.openai.manifest import MANIFEST
from services.provider_adapter.adapters.openai.videos import VIDEOS
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.judgement import judge_job
from services.provider_adapter.domain.outcomes import JobState, Made, Media, Polled
from services.provider_adapter.domain.replies import (
    answered_at,
    chosen,
    document,
    number_in,
    number_of,
    refused,
    text_of,
)


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that reads one clip's job."""
    return HttpRequest("GET", f"{VIDEOS}/{quote(provider_task_id, safe='')}")


def parse(response: HttpResponse, job: Job) -> Polled:
    """Where the clip stands. Raises Fault `poll_failed` or `malformed_reply`, which say nothing about it."""
    task = document(response, Phase.POLL, TABLE)
    state, video_id = MANIFEST.states.get(text_of(task.get("status")).lower()), text_of(task.get("id"))
    if state is None or (state is JobState.SUCCEEDED and not video_id):
        raise refused(response, Phase.POLL, TABLE)
    unknown = unknown_fields("task", task, MANIFEST.read_fields, MANIFEST.ignored_fields)
    now = answered_at(response)
    if state is JobState.FAILED:
        return Polled(state, failure=judge_job({"error": task.get("error")}, TABLE, now), unknown_fields=unknown)
    expires_s = number_of(task.get("expires_at"))
    if state is JobState.SUCCEEDED and expires_s is not None and expires_s <= now.timestamp():
        gone = judge_job({"error": {"message": "the asset's time is over"}}, TABLE, now)
        return Polled(JobState.FAILED, failure=gone, unknown_fields=unknown)
    made = _made(task, video_id) if state is JobState.SUCCEEDED else None
    return Polled(state, made=made, unknown_fields=unknown)


def _made(task: Mapping[str, Any], video_id: str) -> Made:
    usage = {"seconds": number_in(task.get("seconds")), "size": task.get("size")}  # seconds are told as a text
    content = Media("video", url=f"{VIDEOS}/{quote(video_id, safe='')}/content", keyed=True)
    return Made((content,), chosen(task, "size", "seconds"), chosen(usage, "seconds", "size"))
