"""Asking Ark to stop a task.

DELETE cancels a queued task, deletes the record of an ended one, and refuses a running one. So it is sent once only
(a second one would delete the record), and a refusal means that the task runs on.
"""

from urllib.parse import quote

from services.provider_adapter.adapters.ark.faults import TABLE
from services.provider_adapter.adapters.ark.manifest import TASKS
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Cancelled
from services.provider_adapter.domain.replies import refused

_RUNS_ON = frozenset({400, 403, 409})


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that stops one task."""
    return HttpRequest("DELETE", f"{TASKS}/{quote(provider_task_id, safe='')}", fresh=True)


def parse(response: HttpResponse, job: Job) -> Cancelled:
    """Whether the task will not run to its end. Raises Fault when the answer does not say."""
    if 200 <= response.status < 300:
        return Cancelled(True)
    fault = refused(response, Phase.CANCEL, TABLE)
    if response.status in _RUNS_ON and fault.metadata.get("reason") not in ("key_invalid", "balance_exhausted"):
        return Cancelled(False)
    raise fault
