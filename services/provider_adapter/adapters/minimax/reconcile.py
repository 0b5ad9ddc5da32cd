"""Looking for an unanswered submission among MiniMax's tasks, which carry nothing of ours.

What is plainly of another size or length is not ours. When nothing else was made since, nothing arrived; otherwise
nobody can tell, and the tasks that look like ours are named for a person.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from services.provider_adapter.adapters.minimax.faults import TABLE
from services.provider_adapter.adapters.minimax.manifest import MANIFEST, SECOND_QUERY, accepted, second
from services.provider_adapter.adapters.minimax.submit import SIZES, size_of
from services.provider_adapter.domain.adapter import Page
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Listed
from services.provider_adapter.domain.replies import document, list_of, number_of, object_of, refused, text_of

PAGE_SIZE = 100
LENGTH_SLACK_S = 1


def build(job: Job, endpoint: Endpoint, page: Page) -> HttpRequest | None:
    """The request for one page of tasks of the job's model; None for the first interface, which has no list."""
    if not second(job):
        return None
    query = (("page_num", str(int(page))), ("page_size", str(PAGE_SIZE)), ("filter.model", job.model))
    return HttpRequest("GET", SECOND_QUERY, query=query)


def parse(response: HttpResponse, job: Job) -> Listed:
    """What the page shows. Raises Fault when it is no page."""
    body = document(response, Phase.RECONCILE, TABLE)
    if not isinstance(body.get("items"), list) or not accepted(body.get("base_resp")):
        raise refused(response, Phase.RECONCILE, TABLE)
    tasks = [object_of(item) for item in list_of(body["items"])]
    times = [number_of(task.get("created_at")) for task in tasks]
    known = [time for time in times if time is not None]
    total = number_of(body.get("total"))
    alike = [(task, time) for task, time in zip(tasks, times, strict=True) if _alike(task, job)]
    return Listed(
        seen=len(tasks),
        total=None if total is None else int(total),
        oldest_s=min(known, default=None),
        newest_s=max(known, default=None),
        descending=len(known) == len(times) and all(a >= b for a, b in pairwise(known)),
        unmarked_s=tuple(time if time is not None else float("inf") for _, time in alike),
        likely=tuple(text_of(task.get("id")) for task, _ in alike),
        unknown_fields=unknown_fields("list", body, MANIFEST.read_fields, MANIFEST.ignored_fields),
    )


def _alike(task: Mapping[str, Any], job: Job) -> bool:
    """Whether the task may be ours: no size or length that both tell is plainly another one. In doubt it may."""
    size, theirs = size_of(job).upper(), text_of(task.get("resolution")).upper()
    if {size, theirs} <= SIZES and size != theirs:
        return False
    asked, made = job.seconds_up("duration_s"), number_of(task.get("duration"))
    return asked is None or made is None or abs(asked - made) <= LENGTH_SLACK_S
