"""What differs between servers that speak as OpenAI does: their paths, their codes, the fields of their replies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from libs.kernel.money import Money
from services.provider_adapter.adapters.openai.faults import TABLE
from services.provider_adapter.adapters.openai.manifest import MANIFEST
from services.provider_adapter.domain.adapter import KEY
from services.provider_adapter.domain.calls import Usage, count
from services.provider_adapter.domain.exchange import HttpRequest
from services.provider_adapter.domain.inputs import encoded
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.replies import number_of, object_of
from services.provider_adapter.domain.table import FaultTable

MOST_USD = 1_000_000  # a call that costs more has been misread
Query = tuple[tuple[str, str], ...]


def plain_path(path: str, job: Job, endpoint: Endpoint) -> tuple[str, Query]:
    """OpenAI's own: the operation under the base URL."""
    return path, ()


@dataclass(frozen=True, slots=True)
class Dialect:
    """One family of servers. `path` gives path and query of an operation; `request_id` names the header of an answer
    that holds the provider's own id of it."""

    table: FaultTable
    read_fields: frozenset[str]
    ignored_fields: frozenset[str]
    path: Callable[[str, Job, Endpoint], tuple[str, Query]] = plain_path
    request_id: str = "x-request-id"

    def post(self, path: str, body: Mapping[str, Any], job: Job, endpoint: Endpoint, *, fresh: bool) -> HttpRequest:
        """A request with a JSON body. The token is for the provider's logs; a key only where the Channel says so."""
        headers = {"content-type": "application/json", "x-client-request-id": job.client_token}
        if endpoint.reconcile_by == KEY:
            headers["idempotency-key"] = job.client_token
        path, query = self.path(path, job, endpoint)
        return HttpRequest("POST", path, query, headers, encoded(body), fresh)


OPENAI = Dialect(TABLE, MANIFEST.read_fields, MANIFEST.ignored_fields)


def usage_of(usage: Any) -> Usage:
    """The `usage` of a completion or an embedding."""
    read, made = "prompt_tokens_details", "completion_tokens_details"
    return Usage(
        input_tokens=count(usage, "prompt_tokens"),
        cached_input_tokens=count(usage, read, "cached_tokens"),
        cache_write_tokens=count(usage, read, "cache_write_tokens"),
        input_audio_tokens=count(usage, read, "audio_tokens"),
        input_image_tokens=count(usage, read, "image_tokens"),
        output_tokens=count(usage, "completion_tokens"),
        reasoning_tokens=count(usage, made, "reasoning_tokens"),
        output_audio_tokens=count(usage, made, "audio_tokens"),
    )


def cost_of(usage: Any) -> Money | None:
    """What a server says that it charged: ticks of 10^-10 USD (xAI), or credits of one USD beside their details
    (OpenRouter). A bare `cost` may be anything."""
    told = object_of(usage)
    ticks, credits = number_of(told.get("cost_in_usd_ticks")), number_of(told.get("cost"))
    if ticks is not None:
        amount = Decimal(str(ticks)).scaleb(-10)
    elif credits is not None and isinstance(told.get("cost_details"), Mapping):
        amount = Decimal(str(credits))
    else:
        return None
    return Money("USD", amount) if amount.is_finite() and 0 <= amount < MOST_USD else None
