"""Pictures and speech as servers of the OpenAI dialect make them: pictures as base64 in JSON, speech as bytes.

`seed` is not sent: the dialect has no word for it, and the provider refuses words that it does not know.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from services.provider_adapter.adapters.openai.dialect import Dialect
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Made, Media, Submitted
from services.provider_adapter.domain.replies import chosen, document, list_of, object_of, refused, text_of

IMAGES = "/images/generations"
EDITS = "/images/edits"
SPEECH = "/audio/speech"
DEFAULT_VOICE = "alloy"
DEFAULT_FORMAT = "mp3"
_USAGE = ("input_tokens", "output_tokens", "total_tokens", "input_tokens_details", "output_tokens_details")


def build(job: Job, endpoint: Endpoint, dialect: Dialect) -> HttpRequest:
    """The request that makes the media. Raises Fault for an input that the dialect has no words for."""
    if job.kind == "image":
        body = _image(job)
        return dialect.post(EDITS if "images" in body else IMAGES, body, job, endpoint, fresh=True)
    return dialect.post(SPEECH, _speech(job), job, endpoint, fresh=True)


def parse(response: HttpResponse, job: Job, dialect: Dialect) -> Submitted:
    """The media in the answer. Raises Fault for a refusal, and for an answer that proves nothing."""
    return _sound(response, job, dialect) if job.kind == "speech" else _pictures(response, dialect)


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
    body: dict[str, Any] = {
        "model": job.model,
        "input": job.required("text"),
        "voice": job.text("voice") or DEFAULT_VOICE,
        "response_format": job.text("format") or DEFAULT_FORMAT,
    }
    speed = job.number("speed")
    if speed not in (None, 1):  # not every model takes the word
        body["speed"] = speed
    return body


def _pictures(response: HttpResponse, dialect: Dialect) -> Submitted:
    body = document(response, Phase.SUBMIT, dialect.table, synchronous=True)
    items = [object_of(item) for item in list_of(body.get("data"))]
    found = [(media, text_of(item.get("revised_prompt"))) for item in items if (media := _picture(item)) is not None]
    if not found:
        raise refused(response, Phase.SUBMIT, dialect.table, synchronous=True)
    beside = chosen(body, "size", "quality")
    if any(prompt for _, prompt in found):
        beside["revised_prompts"] = [prompt for _, prompt in found]
    made = Made(tuple(media for media, _ in found), beside, chosen(object_of(body.get("usage")), *_USAGE))
    unknown = unknown_fields("image", body, dialect.read_fields, dialect.ignored_fields)
    return Submitted(made=made, unknown_fields=unknown)


def _picture(item: Mapping[str, Any]) -> Media | None:
    if text_of(item.get("b64_json")):
        try:
            return Media("image", data=base64.b64decode(item["b64_json"], validate=True))
        except (binascii.Error, ValueError):
            return None
    url = text_of(item.get("url"))
    return Media("image", url=url) if url else None


def _sound(response: HttpResponse, job: Job, dialect: Dialect) -> Submitted:
    spoken = 200 <= response.status < 300 and response.body and not response.media_type.endswith(("json", "html"))
    if not spoken:
        raise refused(response, Phase.SUBMIT, dialect.table, synchronous=True)
    media = Media("audio", data=response.body, media_type=response.media_type)
    return Submitted(made=Made((media,), usage={"characters": len(job.text("text"))}))
