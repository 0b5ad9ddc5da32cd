"""Asking Replicate to stop a prediction: a POST, which answers with the prediction as it stands then."""

from services.provider_adapter.adapters.replicate.faults import TABLE
from services.provider_adapter.adapters.replicate.manifest import MANIFEST, prediction
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Cancelled, JobState
from services.provider_adapter.domain.replies import document, refused, text_of


def build(job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest:
    """The request that stops one prediction."""
    return HttpRequest("POST", f"{prediction(provider_task_id)}/cancel", fresh=True)


def parse(response: HttpResponse, job: Job) -> Cancelled:
    """Whether the prediction will not run to its end: only its state tells. Raises Fault when none is told."""
    body = document(response, Phase.CANCEL, TABLE)
    word = text_of(body.get("status")).lower()
    state = MANIFEST.states.get(word)
    if state is None:
        raise refused(response, Phase.CANCEL, TABLE)
    return Cancelled(state is JobState.CANCELLED or word == "aborted")
