"""Asking Runway where a task stands. HTTP 200 is an answer; everything else is a failed poll.

A task that waits because others run is `THROTTLED`: queued, and no failure. The URLs of a result are new at every poll.
"""

from urllib.parse import quote

from services.provider_adapter.adapters.runway.faults import TABLE
from services.provider_adapter.adapters.runway.manifest import MANIFEST, TASKS, VERSION
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.judgement import judge_job
from services.provider_adapter.domain.outcomes import JobState, Made, Media, Polled
from services.provider_adapter.domain.replies import answered_at, chosen, document, list_of, refused, text_of


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that reads one task."""
    return HttpRequest("GET", f"{TASKS}/{quote(provider_task_id, safe='')}", headers=VERSION)


def parse(response: HttpResponse, job: Job) -> Polled:
    """Where the task stands. Raises Fault `poll_failed` or `malformed_reply`, which say nothing about it."""
    task = document(response, Phase.POLL, TABLE)
    state = MANIFEST.states.get(text_of(task.get("status")).lower())
    if state is None:
        raise refused(response, Phase.POLL, TABLE)
    unknown = unknown_fields("task", task, MANIFEST.read_fields, MANIFEST.ignored_fields)
    if state is JobState.SUCCEEDED:
        urls = [url for url in map(text_of, list_of(task.get("output"))) if url]
        if urls:
            asked = job.seconds_up("duration_s")  # it is what was made and is charged; the reply does not say it again
            usage = {} if asked is None else {"seconds": asked}
            made = Made(tuple(Media("video", url=url) for url in urls), usage=usage)
            return Polled(state, made=made, unknown_fields=unknown)
        state = JobState.FAILED  # a success without a result is the supply's failure, and is not paid for as a success
    if state is JobState.FAILED:
        said = chosen(task, "failure", "failureCode")
        return Polled(state, failure=judge_job(said, TABLE, answered_at(response)), unknown_fields=unknown)
    return Polled(state, unknown_fields=unknown)
