"""Asking Replicate for a prediction.

`Prefer: wait` is not sent: an answer that waits for the result is lost more easily than one that names an id. Inputs
have the names that most models of clips and pictures share; a model that calls them otherwise answers with 422.
"""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from libs.faults.fault import Fault
from services.provider_adapter.adapters.replicate.faults import TABLE
from services.provider_adapter.adapters.replicate.manifest import MANIFEST, PREDICTIONS
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Submitted
from services.provider_adapter.domain.replies import document, refused, text_of
from services.provider_adapter.domain.sizes import pixels_of

_VERSION = re.compile(r"[0-9a-f]{64}")


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request that creates the job. Raises Fault for an input that Replicate has no words for."""
    version = version_of(job.model)
    path = PREDICTIONS if version else f"/models/{quote(job.model)}/predictions"
    body = {"version": version, "input": inputs(job)} if version else {"input": inputs(job)}
    headers = {"content-type": "application/json", "x-client-request-id": job.client_token}  # for their logs, not a key
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return HttpRequest("POST", path, headers=headers, body=data, fresh=True)


def parse(response: HttpResponse, job: Job) -> Submitted:
    """What the answer means: 201 and 202 alike. Raises Fault for a refusal, and for what proves nothing."""
    body = document(response, Phase.SUBMIT, TABLE)
    prediction_id = text_of(body.get("id"))
    if not prediction_id:
        raise refused(response, Phase.SUBMIT, TABLE)
    unknown = unknown_fields("created", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Submitted(provider_task_id=prediction_id, unknown_fields=unknown)


def version_of(model: str) -> str:
    """The version that a model's id pins, "" where the newest one serves."""
    pinned = model.rpartition(":")[2]
    return pinned if ":" in model or _VERSION.fullmatch(pinned) else ""


def inputs(job: Job) -> dict[str, Any]:
    """The inputs of the model. Raises Fault for an input that Replicate has no words for."""
    if job.kind == "video":
        given = _video(job)
    elif job.kind == "image":
        given = _image(job)
    else:
        raise Fault.of("source_not_configured", f"adapter 'replicate' makes no {job.kind!r}")
    return {name: value for name, value in given.items() if value not in (None, "", [])}


def _video(job: Job) -> Mapping[str, Any]:
    first = job.material("first_frame")
    return {
        "prompt": job.text("prompt") if first else job.required("prompt"),
        "image": first,
        "last_frame_image": job.material("last_frame"),
        "reference_images": list(job.materials("reference_images")),
        "reference_videos": list(job.materials("reference_videos")),
        "reference_audios": list(job.materials("reference_audios")),
        "duration": job.seconds_up("duration_s"),  # never shorter than asked
        "resolution": job.text("resolution"),
        "aspect_ratio": job.text("ratio"),
        "generate_audio": job.flag("audio"),
        "seed": job.whole("seed"),
    }


def _image(job: Job) -> Mapping[str, Any]:
    size = job.text("size")
    pixels = pixels_of(size)
    width, height = pixels or (None, None)
    return {
        "prompt": job.required("prompt"),
        "image_input": list(job.materials("reference_images")),
        "size": size if pixels is None else "custom",
        "width": width,
        "height": height,
        "num_outputs": job.whole("n"),
        "seed": job.whole("seed"),
    }
