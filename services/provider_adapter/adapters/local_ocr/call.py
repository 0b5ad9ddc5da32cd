"""One picture to be read, and what is written in it."""

from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.local_ocr.faults import TABLE
from services.provider_adapter.adapters.local_ocr.manifest import MANIFEST, OCR, TASKS
from services.provider_adapter.domain.calls import Answered, Report, Usage, count
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.inputs import encoded
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.replies import document, list_of, number_of, refused
from services.provider_adapter.domain.turns import checked, inline

SAID = frozenset({"image", "task"})


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request to read a picture. Raises Fault for an input without one, and for an unknown task."""
    checked(job.input, MANIFEST.name, SAID, frozenset())
    task = job.text("task") or TASKS[0]
    if task not in TASKS:
        raise Fault.invalid(("/input/task", f"must be {' or '.join(TASKS)}"))
    url = job.material("image")
    if not url:
        raise Fault.invalid(("/input/image", 'is required: {"url"}, {"artifact"} or {"base64", "media_type"}'))
    data = inline(url, "/input/image/url")
    image = {"url": url} if data is None else {"base64": data.base64, "media_type": data.media_type}
    headers = {"content-type": "application/json", "x-client-request-id": job.client_token}
    return HttpRequest("POST", OCR, headers=headers, body=encoded({"model": job.model, "image": image, "task": task}))


def parse(response: HttpResponse, job: Job) -> Answered:
    """What is written there. Raises Fault for a refusal, and for an answer of another shape."""
    body = document(response, Phase.SUBMIT, TABLE, synchronous=True)
    if not isinstance(body.get("text"), str) or not all(map(_is_block, list_of(body.get("blocks")))):
        raise refused(response, Phase.SUBMIT, TABLE, synchronous=True)
    report = Report(Usage(pages=count(body, "pages")), provider_request_id=response.headers.get("x-request-id", ""))
    unknown = unknown_fields("ocr", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Answered(response.body, report, unknown)


def _is_block(block: Any) -> bool:
    """A text with a box of left, top, width and height."""
    if not isinstance(block, Mapping) or not isinstance(block.get("text"), str):
        return False
    box = list_of(block.get("box"))
    return len(box) == 4 and all(number_of(side) is not None for side in box)
