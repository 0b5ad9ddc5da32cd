"""Where Azure puts what OpenAI has under one base URL."""

from urllib.parse import parse_qs, quote, urlsplit

from services.provider_adapter.adapters.azure_openai.faults import TABLE
from services.provider_adapter.adapters.azure_openai.manifest import DEFAULT_API_VERSION, MANIFEST
from services.provider_adapter.adapters.openai.dialect import Dialect, Query
from services.provider_adapter.domain.job import Endpoint, Job


def path_of(path: str, job: Job, endpoint: Endpoint) -> tuple[str, Query]:
    """The path of an operation: plain under `/openai/v1`, else that of the deployment, with a version of the API."""
    base = urlsplit(endpoint.base_url)
    under = base.path.rstrip("/")
    if under.endswith("/v1"):
        return path, ()
    above = "" if under.endswith("/openai") else "/openai"
    query = () if "api-version" in parse_qs(base.query) else (("api-version", DEFAULT_API_VERSION),)
    return f"{above}/deployments/{quote(job.model, safe='')}{path}", query


AZURE = Dialect(TABLE, MANIFEST.read_fields, MANIFEST.ignored_fields, path_of, "apim-request-id")
