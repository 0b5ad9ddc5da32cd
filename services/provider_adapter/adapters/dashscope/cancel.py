"""Asking DashScope to stop a task. Only a pending one can be; of any other the wish is refused, and it runs on."""

from services.provider_adapter.adapters.dashscope.faults import TABLE
from services.provider_adapter.adapters.dashscope.manifest import task
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Cancelled
from services.provider_adapter.domain.reading import read
from services.provider_adapter.domain.replies import document, refused


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that stops one task."""
    return HttpRequest("POST", f"{task(provider_task_id)}/cancel", fresh=True)


def parse(response: HttpResponse, job: Job) -> Cancelled:
    """Whether the task will not run to its end. Raises Fault when the answer does not say."""
    codes = {clue.text for clue in read(response.body, response.media_type).codes}
    if "UnsupportedOperation" in codes:
        return Cancelled(False)
    document(response, Phase.CANCEL, TABLE)
    if codes:
        raise refused(response, Phase.CANCEL, TABLE)
    return Cancelled(True)
