"""Putting a request into fal's queue.

`x-fal-no-retry` keeps fal from running it again by itself: a second run is a decision of ours. Inputs have the names
that most models of fal share; a model that calls them otherwise answers with 422, which is a refusal.
"""

import json
from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.fal.faults import TABLE
from services.provider_adapter.adapters.fal.manifest import MANIFEST, submission
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Submitted
from services.provider_adapter.domain.replies import document, refused, text_of
from services.provider_adapter.domain.sizes import pixels_of


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request that creates the job. Raises Fault for an input that fal has no words for."""
    if job.kind not in MANIFEST.kinds:
        raise Fault.of("source_not_configured", f"adapter 'fal' makes no {job.kind!r}")
    given = _video(job) if job.kind == "video" else _image(job)
    body = {name: value for name, value in given.items() if value not in (None, "", [])}
    headers = {
        "content-type": "application/json",
        "x-fal-no-retry": "1",
        "x-client-request-id": job.client_token,  # for their logs, not a key
    }
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return HttpRequest("POST", submission(job), headers=headers, body=data, fresh=True)


def parse(response: HttpResponse, job: Job) -> Submitted:
    """What the answer means. Raises Fault for a refusal, and for an answer that proves nothing."""
    body = document(response, Phase.SUBMIT, TABLE)
    request_id = text_of(body.get("request_id"))
    if not request_id:
        raise refused(response, Phase.SUBMIT, TABLE)
    unknown = unknown_fields("created", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Submitted(provider_task_id=request_id, unknown_fields=unknown)


def _video(job: Job) -> Mapping[str, Any]:
    first = job.material("first_frame")
    seconds = job.seconds_up("duration_s")  # never shorter than asked
    return {
        "prompt": job.text("prompt") if first else job.required("prompt"),
        "image_url": first,
        "end_image_url": job.material("last_frame"),
        "image_urls": list(job.materials("reference_images")),
        "video_urls": list(job.materials("reference_videos")),
        "audio_urls": list(job.materials("reference_audios")),
        "duration": "" if seconds is None else str(seconds),
        "resolution": job.text("resolution"),
        "aspect_ratio": job.text("ratio"),
        "generate_audio": job.flag("audio"),
        "seed": job.whole("seed"),
    }


def _image(job: Job) -> Mapping[str, Any]:
    size = job.text("size")
    pixels = pixels_of(size)
    return {
        "prompt": job.required("prompt"),
        "image_urls": list(job.materials("reference_images")),
        "image_size": size if pixels is None else {"width": pixels[0], "height": pixels[1]},
        "num_images": job.whole("n"),
        "seed": job.whole("seed"),
    }
