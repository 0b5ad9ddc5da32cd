"""Looking for an unanswered submission among the clips of the project, newest first.

One with another prompt is surely not ours; one with the same may be ours or of a request just like it.
"""

from itertools import pairwise

from services.provider_adapter.adapters.openai.faults import TABLE
from services.provider_adapter.adapters.openai.manifest import MANIFEST
from services.provider_adapter.adapters.openai.videos import VIDEOS
from services.provider_adapter.domain.adapter import Page
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Listed
from services.provider_adapter.domain.replies import alike, document, list_of, number_of, object_of, refused, text_of

PAGE_SIZE = 100


def build(job: Job, endpoint: Endpoint, page: Page) -> HttpRequest:
    """The request for one page of clips."""
    after = (("after", page.after),) if page.after else ()
    return HttpRequest("GET", VIDEOS, query=(("limit", str(PAGE_SIZE)), ("order", "desc"), *after))


def parse(response: HttpResponse, job: Job) -> Listed:
    """What the page shows. Raises Fault when it is no page."""
    body = document(response, Phase.RECONCILE, TABLE)
    if not isinstance(body.get("data"), list):
        raise refused(response, Phase.RECONCILE, TABLE)
    clips = [object_of(item) for item in list_of(body["data"])]
    told = [number_of(clip.get("created_at")) for clip in clips]
    times = [float("inf") if time is None else time for time in told]
    likely = [
        (time, clip) for time, clip in zip(times, clips, strict=True) if alike(clip.get("prompt"), job.text("prompt"))
    ]
    return Listed(
        seen=len(clips),
        oldest_s=min(times, default=None),
        newest_s=max(times, default=None),
        descending=None not in told and all(a >= b for a, b in pairwise(times)),
        unmarked_s=tuple(time for time, _ in likely),
        likely=tuple(text_of(clip.get("id")) for _, clip in likely),
        after=text_of(body.get("last_id")) or (text_of(clips[-1].get("id")) if clips else ""),
        ended=body.get("has_more") is False,
        unknown_fields=unknown_fields("list", body, MANIFEST.read_fields, MANIFEST.ignored_fields),
    )
