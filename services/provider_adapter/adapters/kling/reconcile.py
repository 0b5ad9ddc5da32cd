"""Looking an unanswered submission up by our token, its `external_task_id`.

The answer is the one task, or that there is none. A server that does not know the question answers with a list of
tasks; ours may be in it, but its absence there proves nothing.
"""

from services.provider_adapter.adapters.kling.faults import NO_SUCH, TABLE
from services.provider_adapter.adapters.kling.manifest import MANIFEST, route
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Listed
from services.provider_adapter.domain.reading import read
from services.provider_adapter.domain.replies import document, object_of, refused, text_of


def build(job: Job, endpoint: Endpoint, page: int) -> HttpRequest:
    """The question for the task of our token."""
    return HttpRequest("GET", route(job), query=(("external_task_id", job.client_token),))


def parse(response: HttpResponse, job: Job) -> Listed:
    """What was found. Raises Fault when the answer does not say."""
    if response.status == 404 and any(clue.text in NO_SUCH for clue in read(response.body, response.media_type).codes):
        return Listed(total=0)
    body = document(response, Phase.RECONCILE, TABLE)
    data = body.get("data")
    if body.get("code") not in (0, None) or not isinstance(data, dict | list):
        raise refused(response, Phase.RECONCILE, TABLE)
    records = [object_of(item) for item in (data if isinstance(data, list) else [data])]
    ours = [item for item in records if object_of(item.get("task_info")).get("external_task_id") == job.client_token]
    unknown = unknown_fields("found", body, MANIFEST.read_fields, MANIFEST.ignored_fields)
    found = next((text_of(item.get("task_id")) for item in ours), "")
    return Listed(found=found, seen=len(records), total=None, descending=False, unknown_fields=unknown)
