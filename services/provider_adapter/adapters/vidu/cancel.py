"""Asking Vidu to stop a task: what waits off the peak hours can be cancelled, what runs is refused."""

import json
from urllib.parse import quote

from services.provider_adapter.adapters.vidu.faults import TABLE
from services.provider_adapter.adapters.vidu.manifest import TASKS
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Cancelled
from services.provider_adapter.domain.replies import refused

_RUNS_ON = frozenset({"invalid_request", "provider_error"})  # a request at fault, and a conflict with what goes on


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that stops one task."""
    path = f"{TASKS}/{quote(provider_task_id, safe='')}/cancel"
    headers = {"content-type": "application/json"}
    return HttpRequest("POST", path, headers=headers, body=json.dumps({"id": provider_task_id}).encode(), fresh=True)


def parse(response: HttpResponse, job: Job) -> Cancelled:
    """Whether the task will not run to its end. Raises Fault when the answer does not say."""
    if 200 <= response.status < 300:
        return Cancelled(True)
    fault = refused(response, Phase.CANCEL, TABLE)
    if response.status in (400, 409) and fault.metadata.get("reason") in _RUNS_ON:
        return Cancelled(False)
    raise fault
