"""Looking for an unanswered submission among DashScope's tasks of the last day, of the whole account.

They are listed without their input, so each of that time may be ours: the list proves only that there is none. They are
not filtered by model either, because a name may be listed under another one.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from services.provider_adapter.adapters.dashscope.faults import TABLE
from services.provider_adapter.adapters.dashscope.manifest import MANIFEST, TASKS
from services.provider_adapter.domain.adapter import Page
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Listed
from services.provider_adapter.domain.replies import document, list_of, number_of, object_of, refused, text_of

PAGE_SIZE = 100
NEVER = float("inf")
FURTHEST_WEST_S = 12 * 3600.0


def build(job: Job, endpoint: Endpoint, page: Page) -> HttpRequest:
    """The request for one page of tasks, pages from 1."""
    return HttpRequest("GET", TASKS, query=(("page_no", str(page)), ("page_size", str(PAGE_SIZE))))


def parse(response: HttpResponse, job: Job) -> Listed:
    """What the page shows. Raises Fault when it is no page."""
    body = document(response, Phase.RECONCILE, TABLE)
    if not isinstance(body.get("data"), list):
        raise refused(response, Phase.RECONCILE, TABLE)
    tasks = [object_of(item) for item in list_of(body["data"])]
    times = [_latest(task) for task in tasks]
    total = number_of(body.get("total"))
    return Listed(
        seen=len(tasks),
        total=None if total is None else int(total),
        oldest_s=min(times, default=None),
        newest_s=max(times, default=None),
        descending=NEVER not in times and all(a >= b for a, b in pairwise(times)),
        unmarked_s=tuple(times),
        likely=tuple(text_of(task.get("task_id")) for task in tasks),
        unknown_fields=unknown_fields("list", body, MANIFEST.read_fields, MANIFEST.ignored_fields),
    )


def _latest(task: Mapping[str, Any]) -> float:
    """The latest moment, in seconds since the epoch, at which the task can have been created.

    Times come in milliseconds, or as a text that keeps its time zone to itself; then it is read as the furthest west.
    """
    for name in ("gmt_create", "submit_time", "start_time"):
        told = number_of(task.get(name))
        if told is not None:
            return told / 1000 if told > 1e11 else told
        try:
            when = datetime.fromisoformat(text_of(task.get(name)))
        except ValueError:
            continue
        return when.timestamp() if when.tzinfo else when.replace(tzinfo=UTC).timestamp() + FURTHEST_WEST_S
    return NEVER
