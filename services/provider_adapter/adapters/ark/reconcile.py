"""Looking for an unanswered submission among Ark's tasks: ours carries the client token as its `safety_identifier`."""

from itertools import pairwise

from services.provider_adapter.adapters.ark.faults import TABLE
from services.provider_adapter.adapters.ark.manifest import MANIFEST, TASKS
from services.provider_adapter.adapters.ark.submit import token
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Listed
from services.provider_adapter.domain.replies import document, list_of, number_of, object_of, refused, text_of

PAGE_SIZE = 100


def build(job: Job, endpoint: Endpoint, page: int) -> HttpRequest:
    """The request for one page of tasks of the job's model, pages from 1."""
    query = (("page_num", str(page)), ("page_size", str(PAGE_SIZE)), ("filter.model", job.model))
    return HttpRequest("GET", TASKS, query=query)


def parse(response: HttpResponse, job: Job) -> Listed:
    """What the page shows. Raises Fault when it is no page."""
    body = document(response, Phase.RECONCILE, TABLE)
    if not isinstance(body.get("items"), list):
        raise refused(response, Phase.RECONCILE, TABLE)
    tasks = [object_of(item) for item in list_of(body["items"])]
    wanted = token(job)
    times = [number_of(task.get("created_at")) for task in tasks]
    known = [time for time in times if time is not None]
    total = number_of(body.get("total"))
    return Listed(
        found=next((text_of(task.get("id")) for task in tasks if task.get("safety_identifier") == wanted), ""),
        seen=len(tasks),
        total=None if total is None else int(total),
        oldest_s=min(known, default=None),
        newest_s=max(known, default=None),
        descending=len(known) == len(times) and all(a >= b for a, b in pairwise(known)),
        unmarked_s=tuple(
            time if time is not None else float("inf")
            for task, time in zip(tasks, times, strict=True)
            if not text_of(task.get("safety_identifier"))
        ),
        unknown_fields=unknown_fields("list", body, MANIFEST.read_fields, MANIFEST.ignored_fields),
    )
