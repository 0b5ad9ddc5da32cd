"""Sending a video job to MiniMax, in the words of the interface that its model belongs to.

- Lengths: the first interface makes 6 or 10 seconds; the shortest clip that is long enough is asked for.
- Sizes: `512P`, `768P`, `1080P` and `2K`; the smallest that is no smaller than asked.
- `seed` and `real_person` are not sent, and by the first interface no `ratio`: it has no words for them.
- A `data:` URL must name what the second interface calls the type: `audio/mp3`, `video/mov`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.minimax.faults import TABLE
from services.provider_adapter.adapters.minimax.manifest import FIRST, MANIFEST, SECOND, accepted, second
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Submitted
from services.provider_adapter.domain.replies import document, refused, text_of

LENGTHS_S = (6, 10)
_FIRST_SIZES = {"480p": "512P", "512p": "512P", "720p": "768P", "768p": "768P", "1080p": "1080P"}
SIZES = frozenset({"512P", "768P", "1080P", "2K"})
_SECOND_SIZES = {"480p": "768P", "512p": "768P", "720p": "768P", "768p": "768P", "1080p": "2K", "2k": "2K"}
_TYPES = {"data:audio/mpeg;": "data:audio/mp3;", "data:video/quicktime;": "data:video/mov;"}
_REFERENCES = (
    ("reference_images", "image_url", "reference_image"),
    ("reference_videos", "video_url", "reference_video"),
    ("reference_audios", "audio_url", "reference_audio"),
)


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request that creates the job. Raises Fault for an input that the interface has no words for."""
    if job.kind != "video":
        raise Fault.of("source_not_configured", f"adapter 'minimax' makes no {job.kind!r}")
    path, body = (SECOND, _second(job)) if second(job) else (FIRST, _first(job))
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {"content-type": "application/json", "x-client-request-id": job.client_token}  # for logs, not a key
    return HttpRequest("POST", path, headers=headers, body=data, fresh=True)


def parse(response: HttpResponse, job: Job) -> Submitted:
    """What the answer means. Raises Fault for a refusal, and for an answer that proves nothing."""
    body = document(response, Phase.SUBMIT, TABLE)
    task_id = text_of(body.get("task_id"))
    if not task_id or not accepted(body.get("base_resp")):
        raise refused(response, Phase.SUBMIT, TABLE)
    unknown = unknown_fields("created", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Submitted(provider_task_id=task_id, unknown_fields=unknown)


def size_of(job: Job) -> str:
    """The size that the second interface was asked for, "" when none was."""
    return _size(job, _SECOND_SIZES)


def _first(job: Job) -> dict[str, Any]:
    job.must_lack(f"minimax with {job.model}", "reference_videos", "reference_audios", "audio")
    images = job.materials("reference_images")
    if len(images) > 1:
        raise Fault.invalid(("/input/reference_images", f"minimax takes one subject with {job.model}"))
    frame = job.material("first_frame")
    body = {
        "model": job.model,
        "prompt": job.text("prompt") if frame else job.required("prompt"),
        "first_frame_image": frame,
        "last_frame_image": job.material("last_frame"),
        "subject_reference": [{"type": "character", "image": list(images)}] if images else [],
        "duration": length_of(job),
        "resolution": _size(job, _FIRST_SIZES),
    }
    return {name: value for name, value in body.items() if value not in (None, "", [])}


def _second(job: Job) -> dict[str, Any]:
    job.must_lack("minimax", "audio")
    content = list(_content(job))
    frames = [item for item in content if item.get("role") in ("first_frame", "last_frame")]
    if frames and len(content) > len(frames) + 1:
        raise Fault.invalid(("/input/first_frame", "minimax takes frames or references, not both"))
    body = {
        "model": job.model,
        "content": content,
        "resolution": size_of(job),
        "duration": job.seconds_up("duration_s"),
        "ratio": _ratio(job),
    }
    return {name: value for name, value in body.items() if value not in (None, "")}


def _content(job: Job) -> Iterator[dict[str, Any]]:
    yield {"type": "text", "text": job.required("prompt")}
    for name in ("first_frame", "last_frame"):
        url = job.material(name)
        if url:
            yield {"type": "image_url", "image_url": {"url": url}, "role": name}
    for name, kind, role in _REFERENCES:
        yield from ({"type": kind, kind: {"url": _typed(url)}, "role": role} for url in job.materials(name))


def _ratio(job: Job) -> str:
    """The ratio to ask for. Words alone need one; a frame gives its own, and a ratio beside it is passed over."""
    if job.input.get("first_frame") or job.input.get("last_frame"):
        return ""
    references = any(job.input.get(name) for name, _, _ in _REFERENCES)
    return job.text("ratio") or ("" if references else "16:9")


def _size(job: Job, sizes: Mapping[str, str]) -> str:
    asked = job.text("resolution")
    return sizes.get(asked.lower(), asked)


def length_of(job: Job) -> int | None:
    """The seconds that the first interface was asked for; None when none were."""
    return job.seconds_of("duration_s", LENGTHS_S)


def _typed(url: str) -> str:
    return next((theirs + url.removeprefix(ours) for ours, theirs in _TYPES.items() if url.startswith(ours)), url)
