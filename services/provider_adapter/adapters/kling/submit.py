"""Sending a job to Kling, under our token as its `external_task_id`.

Pictures travel as a URL or as bare base64. `seed` and `real_person` are not sent: the dialect has no words for them.
"""

import json
from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.kling.faults import TABLE
from services.provider_adapter.adapters.kling.manifest import FRAMES, MANIFEST, REFERENCES, route
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Submitted
from services.provider_adapter.domain.replies import document, object_of, refused, text_of

MODES = {"720p": "std", "1080p": "pro"}


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request that creates the job. Raises Fault for an input that Kling has no words for."""
    if job.kind != "video":
        raise Fault.of("source_not_configured", f"adapter 'kling' makes no {job.kind!r}")
    job.must_lack("kling", "reference_videos", "reference_audios")
    path = route(job)
    seconds = job.seconds_up("duration_s")  # never shorter than asked
    body = {
        "model_name": job.model,
        "prompt": job.text("prompt") if path == FRAMES else job.required("prompt"),
        "mode": MODES.get(job.text("resolution"), ""),
        "duration": "" if seconds is None else str(seconds),
        "sound": {True: "on", False: "off", None: ""}[job.flag("audio")],
        "external_task_id": job.client_token,
        **_pictures(job, path),
    }
    data = json.dumps({name: value for name, value in body.items() if value}, ensure_ascii=False).encode()
    return HttpRequest("POST", path, headers={"content-type": "application/json"}, body=data, fresh=True)


def parse(response: HttpResponse, job: Job) -> Submitted:
    """What the answer means. Raises Fault for a refusal, and for an answer that proves nothing."""
    body = document(response, Phase.SUBMIT, TABLE)
    task_id = text_of(object_of(body.get("data")).get("task_id"))
    if body.get("code") not in (0, None) or not task_id:
        raise refused(response, Phase.SUBMIT, TABLE)
    unknown = unknown_fields("created", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Submitted(provider_task_id=task_id, unknown_fields=unknown)


def _pictures(job: Job, path: str) -> Mapping[str, Any]:
    """What the pictures decide: with a first frame it gives the ratio too."""
    if path == FRAMES:
        return {"image": _bare(job.material("first_frame")), "image_tail": _bare(job.material("last_frame"))}
    images = [{"image": _bare(url)} for url in job.materials("reference_images")] if path == REFERENCES else []
    return {"aspect_ratio": job.text("ratio"), "image_list": images}


def _bare(url: str) -> str:
    return url.partition(";base64,")[2] if url.startswith("data:") else url
