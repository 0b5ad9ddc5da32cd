"""Creating a task at DashScope. `X-DashScope-Async` makes it one; without it the call is refused.

Clips take their frames and references in `media`, as Wan 2.7 and later do; the models before take the address of a
first frame in `img_url`, or a size in pixels.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.dashscope.faults import TABLE
from services.provider_adapter.adapters.dashscope.manifest import EDITS, MANIFEST, PICTURES, VIDEOS
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Submitted
from services.provider_adapter.domain.replies import document, object_of, refused, text_of
from services.provider_adapter.domain.sizes import pixels_of

_BEFORE_MEDIA = re.compile(r"wanx|wan2\.[0-6]\b")
# Pixels by resolution and ratio, as the models before 2.7 want them.
_SIZES = {
    "480p": {"16:9": "832*480", "9:16": "480*832", "1:1": "624*624"},
    "720p": {"16:9": "1280*720", "9:16": "720*1280", "1:1": "960*960", "4:3": "1088*832", "3:4": "832*1088"},
    "1080p": {"16:9": "1920*1080", "9:16": "1080*1920", "1:1": "1440*1440", "4:3": "1632*1248", "3:4": "1248*1632"},
}


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request that creates the job. Raises Fault for an input that DashScope has no words for."""
    if job.kind == "video":
        job.must_lack("dashscope", "reference_audios", "audio")
        given, parameters = _old_video(job) if _BEFORE_MEDIA.match(job.model) else _video(job)
        return _post(VIDEOS, job, given, parameters)
    if job.kind == "image":
        given, parameters = _image(job)
        return _post(EDITS if given["images"] else PICTURES, job, given, parameters)
    raise Fault.of("source_not_configured", f"adapter 'dashscope' makes no {job.kind!r}")


def parse(response: HttpResponse, job: Job) -> Submitted:
    """What the answer means. Raises Fault for a refusal, and for an answer that proves nothing."""
    body = document(response, Phase.SUBMIT, TABLE)
    task_id = text_of(object_of(body.get("output")).get("task_id"))
    if not task_id:
        raise refused(response, Phase.SUBMIT, TABLE)
    unknown = unknown_fields("created", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Submitted(provider_task_id=task_id, unknown_fields=unknown)


def _post(path: str, job: Job, given: Mapping[str, Any], parameters: Mapping[str, Any]) -> HttpRequest:
    body = {"model": job.model, "input": _told(given), "parameters": _told(parameters)}
    headers = {
        "content-type": "application/json",
        "x-dashscope-async": "enable",
        "x-client-request-id": job.client_token,  # for their logs, not a key
    }
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return HttpRequest("POST", path, headers=headers, body=data, fresh=True)


def _told(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value not in (None, "", [])}


def _video(job: Job) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    media = list(_media(job))
    given = {"prompt": job.text("prompt") if media else job.required("prompt"), "media": media}
    parameters = {
        "resolution": job.text("resolution").upper(),
        "ratio": job.text("ratio"),
        "duration": job.seconds_up("duration_s"),  # never shorter than asked
        "seed": job.whole("seed"),
    }
    return given, parameters


def _media(job: Job) -> Iterator[dict[str, str]]:
    for name in ("first_frame", "last_frame"):
        url = job.material(name)
        if url:
            yield {"type": name, "url": url}
    for name, kind in (("reference_images", "reference_image"), ("reference_videos", "reference_video")):
        yield from ({"type": kind, "url": url} for url in job.materials(name))


def _old_video(job: Job) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    job.must_lack(f"dashscope with {job.model}", "last_frame", "reference_images", "reference_videos")
    first = job.material("first_frame")
    resolution, ratio = job.text("resolution"), job.text("ratio") or "16:9"
    parameters: dict[str, Any] = {"duration": job.seconds_up("duration_s"), "seed": job.whole("seed")}
    if first:
        parameters["resolution"] = resolution.upper()
    elif resolution:
        parameters["size"] = _SIZES.get(resolution.lower(), {}).get(ratio, "")
        if not parameters["size"]:
            raise Fault.invalid(("/input/resolution", f"{job.model} has no {resolution} in {ratio}"))
    return {"prompt": job.text("prompt") if first else job.required("prompt"), "img_url": first}, parameters


def _image(job: Job) -> tuple[dict[str, Any], Mapping[str, Any]]:
    size = job.text("size")
    pixels = pixels_of(size)
    given = {"prompt": job.required("prompt"), "images": list(job.materials("reference_images"))}
    parameters = {
        "size": size if pixels is None else f"{pixels[0]}*{pixels[1]}",
        "n": job.whole("n") or 1,  # left out it would mean four at some models
        "seed": job.whole("seed"),
    }
    return given, parameters
