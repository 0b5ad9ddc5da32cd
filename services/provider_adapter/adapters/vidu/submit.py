"""Sending a video job to Vidu: the pictures decide the way.

Our token travels as `payload`, at most 1 MB. Reference videos and audios are refused; `real_person` is not sent. With a
frame the frame gives the ratio.
"""

import json

from libs.faults.fault import Fault
from services.provider_adapter.adapters.vidu.faults import TABLE
from services.provider_adapter.adapters.vidu.manifest import FRAME, FRAMES, MANIFEST, REFERENCES, WORDS
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Submitted
from services.provider_adapter.domain.replies import document, refused, text_of


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request that creates the job. Raises Fault for an input that Vidu has no words for."""
    if job.kind != "video":
        raise Fault.of("source_not_configured", f"adapter 'vidu' makes no {job.kind!r}")
    job.must_lack("vidu", "reference_videos", "reference_audios")
    path, images = _way(job)
    framed = path in (FRAME, FRAMES)
    body = {
        "model": job.model,
        "prompt": job.text("prompt") if framed else job.required("prompt"),
        "images": images,
        "duration": job.seconds_up("duration_s"),  # whole seconds: never shorter than asked
        "resolution": job.text("resolution"),
        "aspect_ratio": "" if framed else job.text("ratio"),
        "audio": job.flag("audio"),
        "seed": job.whole("seed"),
        "payload": job.client_token,
    }
    data = json.dumps({name: value for name, value in body.items() if value not in (None, "", [])}, ensure_ascii=False)
    return HttpRequest("POST", path, headers={"content-type": "application/json"}, body=data.encode(), fresh=True)


def parse(response: HttpResponse, job: Job) -> Submitted:
    """What the answer means. Raises Fault for a refusal, and for an answer that proves nothing."""
    body = document(response, Phase.SUBMIT, TABLE)
    task_id = text_of(body.get("task_id"))
    if not task_id:
        raise refused(response, Phase.SUBMIT, TABLE)
    unknown = unknown_fields("created", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Submitted(provider_task_id=task_id, unknown_fields=unknown)


def _way(job: Job) -> tuple[str, list[str]]:
    """The path and its pictures, in order."""
    first, last = job.material("first_frame"), job.material("last_frame")
    references = list(job.materials("reference_images"))
    if (first or last) and references:
        raise Fault.invalid(("/input/reference_images", "vidu takes frames or reference images, not both"))
    if last and not first:
        raise Fault.invalid(("/input/last_frame", "vidu takes a last frame beside a first one only"))
    if last:
        return FRAMES, [first, last]
    if first:
        return FRAME, [first]
    return (REFERENCES, references) if references else (WORDS, [])
