"""Clips as servers of the OpenAI dialect make them: `seconds` is a text out of a few, and `size` names the pixels."""

from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.openai.dialect import Dialect
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Submitted
from services.provider_adapter.domain.replies import document, refused, text_of

VIDEOS = "/videos"
SECONDS = (4, 8, 12)
SIZES = {
    ("720p", "16:9"): "1280x720",
    ("720p", "9:16"): "720x1280",
    ("1024p", "16:9"): "1792x1024",
    ("1024p", "9:16"): "1024x1792",
}


def build(job: Job, endpoint: Endpoint, dialect: Dialect) -> HttpRequest:
    """The request that asks for a clip. Raises Fault for an input that the dialect has no words for."""
    return dialect.post(VIDEOS, _video(job), job, endpoint, fresh=True)


def parse(response: HttpResponse, dialect: Dialect) -> Submitted:
    """The id of the clip's job. Raises Fault for a refusal, and for an answer that proves nothing."""
    body = document(response, Phase.SUBMIT, dialect.table)
    video_id = text_of(body.get("id"))
    if not video_id:
        raise refused(response, Phase.SUBMIT, dialect.table)
    unknown = unknown_fields("created", body, dialect.read_fields, dialect.ignored_fields)
    return Submitted(provider_task_id=video_id, unknown_fields=unknown)


def _video(job: Job) -> dict[str, Any]:
    job.must_lack("openai", "last_frame", "reference_videos", "reference_audios", "audio")
    body: dict[str, Any] = {"model": job.model, "prompt": job.required("prompt")}
    optional = {"seconds": _seconds(job), "size": _size(job)}
    body |= {name: value for name, value in optional.items() if value}
    pictures = (job.material("first_frame"), *job.materials("reference_images"))
    given = [url for url in pictures if url]
    if len(given) > 1:
        raise Fault.invalid(("/input/reference_images", "openai takes one picture"))
    if given:
        body["input_reference"] = {"image_url": given[0]}
    return body


def _seconds(job: Job) -> str:
    """One of the lengths on offer."""
    seconds = job.seconds_of("duration_s", SECONDS)
    return "" if seconds is None else str(seconds)


def _size(job: Job) -> str:
    resolution, ratio = job.text("resolution").lower(), job.text("ratio")
    if not resolution and not ratio:
        return ""
    size = SIZES.get((resolution or "720p", ratio or "16:9"), "")
    if not size:
        known = "; ".join(f"{known} {shape}" for known, shape in SIZES)
        raise Fault.invalid(("/input/resolution", f"openai has no {resolution} {ratio}: it has {known}"))
    return size
