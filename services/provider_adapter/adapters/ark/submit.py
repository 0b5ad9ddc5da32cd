"""Sending a job to Ark: a video task, which is queued there, or pictures, which come with the answer."""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.ark.faults import TABLE
from services.provider_adapter.adapters.ark.manifest import IMAGES, MANIFEST, TASKS
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Made, Media, Submitted
from services.provider_adapter.domain.replies import chosen, document, list_of, object_of, refused, text_of

TOKEN_LIMIT = 64


def token(job: Job) -> str:
    """What stands in `safety_identifier`: the client token, or its SHA-256 when it is longer than Ark takes."""
    given = job.client_token
    return given if len(given) <= TOKEN_LIMIT else hashlib.sha256(given.encode()).hexdigest()


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request that creates the job. Raises Fault for an input that Ark has no words for."""
    if job.kind == "video":
        return _post(TASKS, _video(job), job)
    if job.kind == "image":
        return _post(IMAGES, _image(job), job)
    raise Fault.of("source_not_configured", f"adapter 'ark' makes no {job.kind!r}")


def parse(response: HttpResponse, job: Job) -> Submitted:
    """What the answer means. Raises Fault for a refusal, and for an answer that proves nothing."""
    if job.kind == "image":
        return _pictures(response)
    body = document(response, Phase.SUBMIT, TABLE)
    task_id = text_of(body.get("id"))
    if not task_id:
        raise refused(response, Phase.SUBMIT, TABLE)
    unknown = unknown_fields("created", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Submitted(provider_task_id=task_id, unknown_fields=unknown)


def _post(path: str, body: Mapping[str, Any], job: Job) -> HttpRequest:
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {"content-type": "application/json", "x-client-request-id": token(job)}  # for their logs, not a key
    return HttpRequest("POST", path, headers=headers, body=data, fresh=True)


def _video(job: Job) -> dict[str, Any]:
    content = list(_content(job))
    if not content:
        raise Fault.invalid(("/input/prompt", "is required when there is no material"))
    body: dict[str, Any] = {"model": job.model, "content": content, "safety_identifier": token(job)}
    optional = {
        "resolution": job.text("resolution"),
        "ratio": job.text("ratio"),
        "duration": job.seconds_up("duration_s"),  # Ark counts whole seconds: never shorter than asked
        "generate_audio": job.flag("audio"),
        "seed": job.whole("seed"),
    }
    return body | {name: value for name, value in optional.items() if value not in (None, "")}


def _content(job: Job) -> Iterator[dict[str, Any]]:
    if job.text("prompt"):
        yield {"type": "text", "text": job.text("prompt")}
    for name in ("first_frame", "last_frame"):
        url = job.material(name)
        if url:
            yield {"type": "image_url", "image_url": {"url": url}, "role": name}
    for name, kind, role in (
        ("reference_images", "image_url", "reference_image"),
        ("reference_videos", "video_url", "reference_video"),
        ("reference_audios", "audio_url", "reference_audio"),
    ):
        yield from ({"type": kind, kind: {"url": url}, "role": role} for url in job.materials(name))
    yield from _film(job)


def _film(job: Job) -> Iterator[dict[str, Any]]:
    """The parts of a film, in roles of our own that the local studio takes; a real Ark refuses them.

    `clip` is the number of the clip that a voice or a line belongs to, from 0; without one, and without times, it
    belongs to the whole.
    """
    clips = job.materials("clips")
    yield from ({"type": "video_url", "video_url": {"url": url}, "role": "clip"} for url in clips)
    voices = job.materials_or_gaps("narration")
    whole = len(voices) == 1 < len(clips)
    for number, url in enumerate(voices):
        if url:
            place = {} if whole else {"clip": number}
            yield {"type": "audio_url", "audio_url": {"url": url}, "role": "narration", **place}
    for number, line in enumerate(job.items("subtitles")):
        told = {"clip": number, "text": line} if isinstance(line, str) else _timed(line, number)
        if line != "":  # which stands for a clip without a line
            yield {"type": "text", "role": "subtitle", **told}


def _timed(line: Any, number: int) -> dict[str, Any]:
    if not isinstance(line, Mapping) or not isinstance(line.get("text"), str):
        raise Fault.invalid((f"/input/subtitles/{number}", "must be a text or {start_s, end_s, text}"))
    return {name: line.get(name) for name in ("start_s", "end_s", "text")}


def _image(job: Job) -> dict[str, Any]:
    body: dict[str, Any] = {"model": job.model, "prompt": job.required("prompt")}
    # The pictures travel in the answer that is paid for: no second request that could fail.
    body |= {"response_format": "b64_json", "watermark": False}
    images = job.materials("reference_images")
    optional = {"size": job.text("size"), "seed": job.whole("seed"), "image": list(images)}
    body |= {name: value for name, value in optional.items() if value not in (None, "", [])}
    count = job.whole("n") or 1
    if count > 1:
        body["sequential_image_generation"] = "auto"
        body["sequential_image_generation_options"] = {"max_images": count}
    return body


def _pictures(response: HttpResponse) -> Submitted:
    body = document(response, Phase.SUBMIT, TABLE, synchronous=True)
    items = [object_of(item) for item in list_of(body.get("data"))]
    media = tuple(media for media in map(_picture, items) if media is not None)
    if not media:  # every picture failed, or there is none: the errors within say why
        raise refused(response, Phase.SUBMIT, TABLE, synchronous=True)
    refusals = [text_of(object_of(item.get("error")).get("code")) for item in items if item.get("error")]
    made = Made(media, {"refused": refusals} if refusals else {}, chosen(object_of(body.get("usage")), *_USAGE))
    unknown = unknown_fields("image", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Submitted(made=made, unknown_fields=unknown)


_USAGE = ("generated_images", "output_tokens", "total_tokens")


def _picture(item: Mapping[str, Any]) -> Media | None:
    if text_of(item.get("b64_json")):
        try:
            return Media("image", data=base64.b64decode(item["b64_json"], validate=True))
        except (binascii.Error, ValueError):
            return None
    url = text_of(item.get("url"))
    return Media("image", url=url) if url else None
