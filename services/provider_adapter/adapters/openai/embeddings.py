"""Embeddings: vectors pass through unread."""

from typing import Any

import msgspec

from libs.faults.fault import Fault
from services.provider_adapter.adapters.openai.dialect import Dialect, cost_of, usage_of
from services.provider_adapter.domain.calls import Answered, Report
from services.provider_adapter.domain.exchange import HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.inputs import raw_fields
from services.provider_adapter.domain.job import Job
from services.provider_adapter.domain.replies import refused, text_of

PATH = "/embeddings"


class _Vector(msgspec.Struct):
    embedding: msgspec.Raw
    index: int


class _Vectors(msgspec.Struct):
    data: list[_Vector]
    usage: Any = None
    id: Any = None
    model: Any = None


_vectors = msgspec.json.Decoder(_Vectors)


def body_of(job: Job) -> dict[str, Any]:
    """The request's body: the input under the provider's name of the model."""
    body = raw_fields(job.input)
    if "input" not in body:
        raise Fault.invalid(("/input/input", "is required: a text or a list of texts"))
    return body | {"model": job.model}


def parse(response: HttpResponse, job: Job, dialect: Dialect) -> Answered:
    """The vectors as they came. Raises Fault when there is not one for each text."""
    try:
        if not 200 <= response.status < 300:
            raise refused(response, Phase.SUBMIT, dialect.table, synchronous=True)
        body = _vectors.decode(response.body)
    except msgspec.MsgspecError:
        raise refused(response, Phase.SUBMIT, dialect.table, synchronous=True) from None
    if sorted(vector.index for vector in body.data) != list(range(texts_in(job.input.get("input")))):
        raise refused(response, Phase.SUBMIT, dialect.table, synchronous=True)
    request_id = response.headers.get(dialect.request_id) or text_of(body.id)
    shallow = msgspec.json.decode(response.body, type=dict[str, msgspec.Raw])
    names = {name: None for name in shallow if name not in ("data", "usage")} | {"usage": body.usage}
    unknown = unknown_fields("embedding", names, dialect.read_fields, dialect.ignored_fields)
    cost, model = cost_of(body.usage), text_of(body.model)
    report = Report(usage_of(body.usage), provider_request_id=request_id, reported_cost=cost, model=model)
    return Answered(response.body, report, unknown)


def texts_in(given: Any) -> int:
    """How many vectors an `input` asks for: a list of texts or of token lists, or one text, or one list of tokens."""
    if not isinstance(given, list) or (given and isinstance(given[0], int)):
        return 1
    return len(given)
