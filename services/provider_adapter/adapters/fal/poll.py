"""Asking fal where a request stands, and, once it is COMPLETED without an error, for its result.

The address of the status speaks about the queue: its HTTP errors say nothing about the request. The address of the
result answers with the result or with what the model says against the request: there an HTTP error is a verdict.
"""

from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.fal.faults import QUESTIONS, TABLE
from services.provider_adapter.adapters.fal.manifest import (
    ERROR_HEADER,
    MANIFEST,
    STOPPED,
    UNITS_HEADER,
    request_path,
)
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.judgement import judge_job
from services.provider_adapter.domain.outcomes import Further, JobState, Made, Media, Polled
from services.provider_adapter.domain.replies import (
    answered_at,
    chosen,
    document,
    list_of,
    number_in,
    number_of,
    object_of,
    refused,
    text_of,
)


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that reads the status."""
    return HttpRequest("GET", f"{request_path(job, provider_task_id)}/status")


def parse(response: HttpResponse, job: Job) -> Polled:
    """Where the request stands. Raises Fault `poll_failed` or `malformed_reply`, which say nothing about it."""
    body = document(response, Phase.POLL, QUESTIONS)
    kind = text_of(body.get("error_type"))
    word = text_of(body.get("status"))
    if word == "COMPLETED" and (body.get("error") or kind):
        word = STOPPED if kind == STOPPED else "error"
    state = MANIFEST.states.get(word)
    request_id = _request_id(body)
    if state is None or (state is JobState.SUCCEEDED and not request_id):
        raise refused(response, Phase.POLL, QUESTIONS)
    unknown = unknown_fields("task", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    if state is JobState.FAILED:
        said = {"error": body.get("error"), "error_type": kind or response.headers.get(ERROR_HEADER, "")}
        return Polled(state, failure=judge_job(said, TABLE, answered_at(response)), unknown_fields=unknown)
    if state is JobState.SUCCEEDED:
        question = HttpRequest("GET", request_path(job, request_id))
        return Polled(JobState.RUNNING, unknown_fields=unknown, further=Further(question, parse_result))
    return Polled(state, unknown_fields=unknown)


def _request_id(body: Mapping[str, Any]) -> str:
    """The id; older answers have it only at the end of the result's address, which itself is never followed."""
    return text_of(body.get("request_id")) or text_of(body.get("response_url")).rstrip("/").rpartition("/")[2]


def parse_result(response: HttpResponse, job: Job) -> Polled:
    """What the request made, or why it made nothing. Raises Fault when the answer is neither."""
    try:
        body = document(response, Phase.POLL, TABLE)
    except Fault as fault:
        if response.status < 400 or fault.code == "poll_failed":
            raise
        return Polled(JobState.FAILED, failure=fault)
    unknown = unknown_fields("result", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    pieces, withheld = _pieces(body, job.kind)
    media = tuple(Media(job.kind, url=text_of(piece.get("url"))) for piece in pieces)
    if not media:
        said = {"code": "content_filtered"} if withheld else body
        return Polled(JobState.FAILED, failure=judge_job(said, TABLE, answered_at(response)), unknown_fields=unknown)
    output = chosen(body, "seed") | ({"refused": ["content_filtered"] * withheld} if withheld else {})
    return Polled(JobState.SUCCEEDED, made=Made(media, output, _usage(response, pieces)), unknown_fields=unknown)


def _pieces(body: Mapping[str, Any], kind: str) -> tuple[list[Mapping[str, Any]], int]:
    """The files of that kind, and how many pictures fal's safety checker has blackened."""
    held = body.get(f"{kind}s")
    given = list_of(held) if isinstance(held, list) else [body.get(kind)]
    files = [{"url": item} if isinstance(item, str) else object_of(item) for item in given]
    flags = list_of(body.get("has_nsfw_concepts"))
    flags += [False] * (len(files) - len(flags))
    kept = [file for file, flag in zip(files, flags, strict=False) if text_of(file.get("url")) and flag is not True]
    return kept, sum(flag is True for flag in flags)


def _usage(response: HttpResponse, pieces: list[Mapping[str, Any]]) -> dict[str, Any]:
    told = {
        "seconds": number_of(pieces[0].get("duration")),
        "billable_units": number_in(response.headers.get(UNITS_HEADER)),
    }
    return chosen(told, "seconds", "billable_units")
