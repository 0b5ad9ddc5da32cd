"""Asking Runway to stop a task.

DELETE cancels a task that waits or runs, and deletes one that has ended, so it is sent once only.
"""

from urllib.parse import quote

from services.provider_adapter.adapters.runway.faults import TABLE
from services.provider_adapter.adapters.runway.manifest import TASKS, VERSION
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Cancelled
from services.provider_adapter.domain.replies import refused


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that stops one task."""
    return HttpRequest("DELETE", f"{TASKS}/{quote(provider_task_id, safe='')}", headers=VERSION, fresh=True)


def parse(response: HttpResponse, job: Job) -> Cancelled:
    """Whether the task will not run to its end. Raises Fault when the answer does not say."""
    if 200 <= response.status < 300:
        return Cancelled(True)
    raise refused(response, Phase.CANCEL, TABLE)
