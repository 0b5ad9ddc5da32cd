"""Sending a video job to Runway: the materials decide the way.

A size is told as pixels, which differ between families of models; without one, 720p and 16:9. `real_person` is not
sent. The client token stands in a header for their logs; it is no key.
"""

import json
from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.runway.faults import TABLE
from services.provider_adapter.adapters.runway.manifest import CLIP, MANIFEST, PICTURES, VERSION, WORDS
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Submitted
from services.provider_adapter.domain.replies import document, refused, text_of

_PIXELS = {
    "720p": {
        "16:9": "1280:720",
        "9:16": "720:1280",
        "4:3": "1104:832",
        "3:4": "832:1104",
        "1:1": "960:960",
        "21:9": "1584:672",
    },
    "1080p": {"16:9": "1920:1080", "9:16": "1080:1920"},
}
_SEEDANCE_PIXELS = {
    "480p": {
        "16:9": "864:496",
        "9:16": "496:864",
        "4:3": "752:560",
        "3:4": "560:752",
        "1:1": "640:640",
        "21:9": "992:432",
    },
    "720p": {
        "16:9": "1280:720",
        "9:16": "720:1280",
        "4:3": "1112:834",
        "3:4": "834:1112",
        "1:1": "960:960",
        "21:9": "1470:630",
    },
    "1080p": {
        "16:9": "1920:1080",
        "9:16": "1080:1920",
        "4:3": "1664:1248",
        "3:4": "1248:1664",
        "1:1": "1440:1440",
        "21:9": "2206:946",
    },
}


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request that creates the job. Raises Fault for an input that Runway has no words for."""
    if job.kind != "video":
        raise Fault.of("source_not_configured", f"adapter 'runway' makes no {job.kind!r}")
    job.must_lack("runway", "audio")
    pictures, clips = _pictures(job), job.materials("reference_videos")
    if len(clips) > 1:
        raise Fault.invalid(("/input/reference_videos", "runway takes one, the clip that is changed"))
    if clips and pictures:
        raise Fault.invalid(("/input/reference_videos", "runway takes a clip or pictures, not both"))
    body = {
        "model": job.model,
        "promptText": job.text("prompt") if pictures else job.required("prompt"),
        "promptImage": pictures,
        "videoUri": clips[0] if clips else "",
        "referenceAudio": [{"type": "audio", "uri": url} for url in job.materials("reference_audios")],
        "duration": job.seconds_up("duration_s"),  # whole seconds: never shorter than asked
        "ratio": _pixels(job),
        "seed": job.whole("seed"),
    }
    path = CLIP if clips else PICTURES if pictures else WORDS
    data = json.dumps({name: value for name, value in body.items() if value not in (None, "", [])}, ensure_ascii=False)
    headers = {"content-type": "application/json", "x-client-request-id": job.client_token, **VERSION}
    return HttpRequest("POST", path, headers=headers, body=data.encode(), fresh=True)


def parse(response: HttpResponse, job: Job) -> Submitted:
    """What the answer means. Raises Fault for a refusal, and for an answer that proves nothing."""
    body = document(response, Phase.SUBMIT, TABLE)
    task_id = text_of(body.get("id"))
    if not task_id:
        raise refused(response, Phase.SUBMIT, TABLE)
    unknown = unknown_fields("created", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Submitted(provider_task_id=task_id, unknown_fields=unknown)


def _pictures(job: Job) -> list[Mapping[str, Any]]:
    """Frames by their position; a picture without a position is a reference."""
    frames = [(name, job.material(f"{name}_frame")) for name in ("first", "last")]
    placed = [{"uri": url, "position": name} for name, url in frames if url]
    references = [{"uri": url} for url in job.materials("reference_images")]
    if placed and references:
        raise Fault.invalid(("/input/reference_images", "runway takes frames or reference images, not both"))
    return [*placed, *references]


def _pixels(job: Job) -> str:
    table = _SEEDANCE_PIXELS if job.model.startswith("seedance") else _PIXELS
    resolution, ratio = job.text("resolution") or "720p", job.text("ratio") or "16:9"
    pixels = table.get(resolution.lower(), {}).get(ratio)
    if pixels is None:
        raise Fault.invalid(("/input/ratio", f"runway has no size for {resolution} and {ratio} with {job.model}"))
    return pixels
