"""Sending a job in the OpenAI dialect: pictures and speech, which come with the answer, and clips, which do not."""

from libs.faults.fault import Fault
from services.provider_adapter.adapters.openai import media, videos
from services.provider_adapter.adapters.openai.dialect import OPENAI
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Submitted


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request that makes the job. Raises Fault for an input that the dialect has no words for."""
    if job.kind in ("image", "speech"):
        return media.build(job, endpoint, OPENAI)
    if job.kind == "video":
        return videos.build(job, endpoint, OPENAI)
    raise Fault.of("source_not_configured", f"adapter 'openai' makes no {job.kind!r}")


def parse(response: HttpResponse, job: Job) -> Submitted:
    """What the answer means. Raises Fault for a refusal, and for an answer that proves nothing."""
    return videos.parse(response, OPENAI) if job.kind == "video" else media.parse(response, job, OPENAI)
