"""Asking Vidu where a task stands. HTTP 200 is an answer; everything else is a failed poll."""

from urllib.parse import quote

from services.provider_adapter.adapters.vidu.faults import TABLE
from services.provider_adapter.adapters.vidu.manifest import MANIFEST, TASKS
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.judgement import judge_job
from services.provider_adapter.domain.outcomes import JobState, Made, Media, Polled
from services.provider_adapter.domain.replies import answered_at, chosen, document, list_of, object_of, refused, text_of


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that reads one task."""
    return HttpRequest("GET", f"{TASKS}/{quote(provider_task_id, safe='')}/creations")


def parse(response: HttpResponse, job: Job) -> Polled:
    """Where the task stands. Raises Fault `poll_failed` or `malformed_reply`, which say nothing about it."""
    task = document(response, Phase.POLL, TABLE)
    state = MANIFEST.states.get(text_of(task.get("state")).lower())
    if state is None:
        raise refused(response, Phase.POLL, TABLE)
    unknown = unknown_fields("task", task, MANIFEST.read_fields, MANIFEST.ignored_fields)
    if state is JobState.SUCCEEDED:
        urls = [text_of(object_of(item).get("url")) for item in list_of(task.get("creations"))]
        media = tuple(Media("video", url=url) for url in urls if url)
        if media:
            usage = chosen(task, "credits")
            asked = job.seconds_up("duration_s")  # it is what was made; the reply does not say it again
            if asked is not None:
                usage["seconds"] = asked
            return Polled(state, made=Made(media, usage=usage), unknown_fields=unknown)
        state = JobState.FAILED  # a success without a result is the supply's failure, and is not paid for as a success
    if state is JobState.FAILED:
        said = chosen(task, "err_code", "err_msg")
        return Polled(state, failure=judge_job(said, TABLE, answered_at(response)), unknown_fields=unknown)
    return Polled(state, unknown_fields=unknown)
