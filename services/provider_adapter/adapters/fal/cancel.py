"""Asking fal to stop a request.

What waited in the queue is taken out of it. To what is running fal only passes the wish on, and the model may not heed
it: such a request is not called stopped until a poll says so.
"""

from services.provider_adapter.adapters.fal.faults import QUESTIONS
from services.provider_adapter.adapters.fal.manifest import request_path
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Cancelled
from services.provider_adapter.domain.reading import read
from services.provider_adapter.domain.replies import refused

_RUNS_ON = frozenset({"CANCELLATION_REQUESTED", "ALREADY_COMPLETED"})


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that stops one request."""
    return HttpRequest("PUT", f"{request_path(job, provider_task_id)}/cancel", fresh=True)


def parse(response: HttpResponse, job: Job) -> Cancelled:
    """Whether the request will not run to its end. Raises Fault when the answer does not say."""
    said = read(response.body, response.media_type)
    if said.state in _RUNS_ON:
        return Cancelled(False)
    if 200 <= response.status < 300 and said.state:
        return Cancelled(True)
    raise refused(response, Phase.CANCEL, QUESTIONS)
