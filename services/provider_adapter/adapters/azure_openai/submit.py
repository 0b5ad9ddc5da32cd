"""Pictures and speech of a deployment, which come with the answer."""

from services.provider_adapter.adapters.azure_openai.dialect import AZURE
from services.provider_adapter.adapters.openai import media
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Submitted


def build(job: Job, endpoint: Endpoint) -> HttpRequest:
    """The request that makes the media. Raises Fault for an input that the dialect has no words for."""
    return media.build(job, endpoint, AZURE)


def parse(response: HttpResponse, job: Job) -> Submitted:
    """The media in the answer. Raises Fault for a refusal, and for an answer that proves nothing."""
    return media.parse(response, job, AZURE)
