"""Looking for an unanswered submission among Replicate's predictions, newest first.

A prediction of another model, or with another prompt, is surely not ours. One that does not differ so may be ours or of
a request just like it: it proves neither. Only the prompt is compared, because a model's schema may write numbers in
another way and files get addresses of Replicate's own; after an hour the inputs are removed, and nothing is compared.
"""

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

from services.provider_adapter.adapters.replicate.faults import TABLE
from services.provider_adapter.adapters.replicate.manifest import MANIFEST, PREDICTIONS
from services.provider_adapter.adapters.replicate.submit import version_of
from services.provider_adapter.domain.adapter import Page
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Listed
from services.provider_adapter.domain.replies import alike, document, list_of, object_of, refused, text_of


def build(job: Job, endpoint: Endpoint, page: Page) -> HttpRequest:
    """The request for one page of predictions."""
    return HttpRequest("GET", PREDICTIONS, query=(("cursor", page.after),) if page.after else ())


def parse(response: HttpResponse, job: Job) -> Listed:
    """What the page shows. Raises Fault when it is no page."""
    body = document(response, Phase.RECONCILE, TABLE)
    if not isinstance(body.get("results"), list):
        raise refused(response, Phase.RECONCILE, TABLE)
    predictions = [object_of(item) for item in list_of(body["results"])]
    times = [_time(prediction) for prediction in predictions]
    likely = [(made, one) for made, one in zip(times, predictions, strict=True) if _may_be_ours(one, job)]
    after = _cursor(text_of(body.get("next")))
    return Listed(
        seen=len(predictions),
        oldest_s=min(times, default=None),
        newest_s=max(times, default=None),
        descending=all(a >= b for a, b in pairwise(times)) and float("inf") not in times,
        unmarked_s=tuple(made for made, _ in likely),
        likely=tuple(text_of(one.get("id")) for _, one in likely),
        after=after,
        ended="next" in body and not body["next"],
        unknown_fields=unknown_fields("list", body, MANIFEST.read_fields, MANIFEST.ignored_fields),
    )


def _time(prediction: Mapping[str, Any]) -> float:
    """When it was created, in seconds since the epoch; never past where it does not say."""
    try:
        when = datetime.fromisoformat(text_of(prediction.get("created_at")))
    except ValueError:
        return float("inf")
    return when.timestamp() if when.tzinfo is not None else float("inf")


def _may_be_ours(prediction: Mapping[str, Any], job: Job) -> bool:
    version = version_of(job.model)
    told, ours = ("version", version) if version else ("model", job.model)
    if text_of(prediction.get(told)).lower() not in ("", ours.lower()):
        return False
    return alike(object_of(prediction.get("input")).get("prompt"), job.text("prompt"))


def _cursor(address: str) -> str:
    """The mark in the address of the next page; the address itself is not followed."""
    try:
        return parse_qs(urlsplit(address).query).get("cursor", [""])[0]
    except ValueError:
        return ""
