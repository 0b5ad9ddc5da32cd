"""Asking MiniMax to stop a task: the second interface alone can.

DELETE cancels a queued task, deletes the record of an ended one, and refuses a running one. So it is sent once only (a
second one would do something else), and a refusal means that the task runs on.
"""

from urllib.parse import quote

from services.provider_adapter.adapters.minimax.faults import TABLE
from services.provider_adapter.adapters.minimax.manifest import SECOND, accepted, second
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Cancelled
from services.provider_adapter.domain.replies import document, refused

_RUNS_ON = frozenset({"invalid_request", "provider_error"})


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest | None:
    """The request that stops one task; None for a task of the first interface."""
    if not second(job):
        return None
    return HttpRequest("DELETE", f"{SECOND}/{quote(provider_task_id, safe='')}", fresh=True)


def parse(response: HttpResponse, job: Job) -> Cancelled:
    """Whether the task will not run to its end. Raises Fault when the answer does not say."""
    if response.status == 204:
        return Cancelled(True)
    if 200 <= response.status < 300 and accepted(document(response, Phase.CANCEL, TABLE).get("base_resp")):
        return Cancelled(True)
    fault = refused(response, Phase.CANCEL, TABLE)
    if response.status < 500 and fault.metadata.get("reason", fault.code) in _RUNS_ON:
        return Cancelled(False)
    raise fault
