"""Sending a job in the OpenAI dialect: pictures as base64 in JSON, speech as bytes.

`seed` is not sent: the dialect has no word for it, and the provider refuses words that it does not know.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.openai.faults import TABLE
from services.provider_adapter.adapters.openai.manifest import EDITS, IMAGES, MANIFEST, SPEECH
from services.provider_adapter.domain.adapter import KEY
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Made, Media, Submitted
from services.provider_adapter.domain.replies import chosen, document, list_of, object_of, refused, text_of

DEFAULT_VOICE = "alloy"
_USAGE = ("input_tokens", "output_tokens", "total_tokens", "input_tokens_details", "output_tokens_details")


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request that makes the job. Raises Fault for an input that the dialect has no words for."""
    if job.kind == "image":
        body = _image(job)
        return _post(EDITS if "images" in body else IMAGES, body, job, endpoint)
    if job.kind == "speech":
        return _post(SPEECH, _speech(job), job, endpoint)
    raise Fault.of("source_not_configured", f"adapter 'openai' makes no {job.kind!r}")


def parse(response: HttpResponse, job: Job) -> Submitted:
    """What the answer means. Raises Fault for a refusal, and for an answer that proves nothing."""
    return _sound(response, job) if job.kind == "speech" else _pictures(response)


def _post(path: str, body: Mapping[str, Any], job: Job, endpoint: Endpoint) -> HttpRequest:
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {"content-type": "application/json", "x-client-request-id": job.client_token}  # for their logs, not a key
    if endpoint.reconcile_by == KEY:
        headers["idempotency-key"] = job.client_token
    return HttpRequest("POST", path, headers=headers, body=data, fresh=True)


def _image(job: Job) -> dict[str, Any]:
    body: dict[str, Any] = {"model": job.model, "prompt": job.required("prompt")}
    optional = {"size": job.text("size"), "n": job.whole("n")}
    body |= {name: value for name, value in optional.items() if value not in (None, "")}
    images = job.materials("reference_images")
    if images:
        body["images"] = [{"image_url": url} for url in images]
    if job.model.startswith("dall-e"):  # newer models always answer with base64 and refuse the word
        body["response_format"] = "b64_json"
    return body


def _speech(job: Job) -> dict[str, Any]:
    return {
        "model": job.model,
        "input": job.required("text"),
        "voice": job.text("voice") or DEFAULT_VOICE,
        "response_format": "mp3",
    }


def _pictures(response: HttpResponse) -> Submitted:
    body = document(response, Phase.SUBMIT, TABLE, synchronous=True)
    items = [object_of(item) for item in list_of(body.get("data"))]
    media = tuple(media for media in map(_picture, items) if media is not None)
    if not media:
        raise refused(response, Phase.SUBMIT, TABLE, synchronous=True)
    made = Made(media, chosen(body, "size", "quality"), chosen(object_of(body.get("usage")), *_USAGE))
    unknown = unknown_fields("image", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Submitted(made=made, unknown_fields=unknown)


def _picture(item: Mapping[str, Any]) -> Media | None:
    if text_of(item.get("b64_json")):
        try:
            return Media("image", data=base64.b64decode(item["b64_json"], validate=True))
        except (binascii.Error, ValueError):
            return None
    url = text_of(item.get("url"))
    return Media("image", url=url) if url else None


def _sound(response: HttpResponse, job: Job) -> Submitted:
    spoken = 200 <= response.status < 300 and response.body and not response.media_type.endswith(("json", "html"))
    if not spoken:
        raise refused(response, Phase.SUBMIT, TABLE, synchronous=True)
    media = Media("audio", data=response.body, media_type=response.media_type)
    return Submitted(made=Made((media,), usage={"characters": len(job.text("text"))}))
