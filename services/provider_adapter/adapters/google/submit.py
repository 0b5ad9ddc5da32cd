"""Sending a clip to Veo: a long-running prediction. Pictures travel in the request; Veo fetches no URLs."""

from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.google.faults import TABLE
from services.provider_adapter.adapters.google.manifest import MANIFEST, model_path
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.inputs import encoded
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Submitted
from services.provider_adapter.domain.replies import document, refused, text_of
from services.provider_adapter.domain.turns import inline

DURATIONS_S = (4, 6, 8)
DEFAULT_S = 8


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request that creates the operation. Raises Fault for an input that Veo has no words for."""
    job.must_lack("google", "reference_videos", "reference_audios", "audio")
    instance: dict[str, Any] = {"prompt": job.required("prompt")}
    for ours, theirs in (("first_frame", "image"), ("last_frame", "lastFrame")):
        url = job.material(ours)
        if url:
            instance[theirs] = _picture(url, f"/input/{ours}")
    references = job.materials("reference_images")
    if references:
        instance["referenceImages"] = [
            {"image": _picture(url, f"/input/reference_images/{index}"), "referenceType": "asset"}
            for index, url in enumerate(references)
        ]
    parameters = {
        "aspectRatio": job.text("ratio"),
        "resolution": job.text("resolution"),
        "durationSeconds": job.seconds_of("duration_s", DURATIONS_S),
        "seed": job.whole("seed"),
    }
    body: dict[str, Any] = {"instances": [instance]}
    said = {name: value for name, value in parameters.items() if value not in (None, "")}
    body |= {"parameters": said} if said else {}
    headers = {"content-type": "application/json", "x-client-request-id": job.client_token}  # for our own traces only
    path = model_path(job.model, "predictLongRunning")
    return HttpRequest("POST", path, headers=headers, body=encoded(body), fresh=True)


def parse(response: HttpResponse, job: Job) -> Submitted:
    """The operation's name. Raises Fault for a refusal, and for an answer that proves nothing."""
    body: Mapping[str, Any] = document(response, Phase.SUBMIT, TABLE)
    name = text_of(body.get("name"))
    if not name:
        raise refused(response, Phase.SUBMIT, TABLE)
    unknown = unknown_fields("created", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Submitted(provider_task_id=name, unknown_fields=unknown)


def seconds_of(job: Job) -> int:
    """How long the clip is: one of Veo's lengths."""
    return job.seconds_of("duration_s", DURATIONS_S) or DEFAULT_S


def _picture(url: str, pointer: str) -> dict[str, str]:
    data = inline(url, pointer)
    if data is None:
        raise Fault.invalid((pointer, "must be an artifact or base64: the dialect 'google' fetches no URLs for clips"))
    return {"bytesBase64Encoded": data.base64, "mimeType": data.media_type}
