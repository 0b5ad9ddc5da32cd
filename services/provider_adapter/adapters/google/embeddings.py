"""Texts to be embedded, all in one request, and their vectors in OpenAI's shape."""

import array
import base64
import sys
from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.google.faults import TABLE
from services.provider_adapter.adapters.google.manifest import MANIFEST, NAME
from services.provider_adapter.domain.calls import Answered, Report, Usage, count
from services.provider_adapter.domain.exchange import HttpResponse, Phase
from services.provider_adapter.domain.fields import unknown_fields
from services.provider_adapter.domain.inputs import encoded
from services.provider_adapter.domain.job import Job
from services.provider_adapter.domain.replies import document, list_of, object_of, refused
from services.provider_adapter.domain.turns import checked

SAID, LEFT_OUT = frozenset({"input", "dimensions", "encoding_format"}), frozenset({"user"})


def body_of(job: Job) -> dict[str, Any]:
    """One request for each text. Raises Fault for tokens, of which Gemini has no word."""
    checked(job.input, NAME, SAID, LEFT_OUT)
    size = job.whole("dimensions")
    shaped = {} if size is None else {"outputDimensionality": size}
    model = f"models/{job.model.removeprefix('models/')}"
    return {"requests": [{"model": model, "content": {"parts": [{"text": text}]}, **shaped} for text in _texts(job)]}


def parse(response: HttpResponse, job: Job) -> Answered:
    """The vectors. Raises Fault when there is not one for each text."""
    body = document(response, Phase.SUBMIT, TABLE, synchronous=True)
    vectors = [list_of(object_of(item).get("values")) for item in list_of(body.get("embeddings"))]
    if len(vectors) != len(_texts(job)) or not all(vectors):
        raise refused(response, Phase.SUBMIT, TABLE, synchronous=True)
    usage = Usage(input_tokens=count(body, "usageMetadata", "promptTokenCount"))
    packed = job.input.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _packed(vector) if packed else vector}
        for index, vector in enumerate(vectors)
    ]
    tokens = usage.input_tokens or 0
    told = {"prompt_tokens": tokens, "total_tokens": tokens}
    output: dict[str, Any] = {"object": "list", "data": data, "model": job.model, "usage": told}
    report = Report(usage, ignored_fields=checked(job.input, NAME, SAID, LEFT_OUT))
    unknown = unknown_fields("embedding", _shallow(body), MANIFEST.read_fields, MANIFEST.ignored_fields)
    return Answered(encoded(output), report, unknown)


def _texts(job: Job) -> list[str]:
    given = job.input.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise Fault.invalid(("/input/input", "must be a text or a list of texts, none of them empty, in this dialect"))
    return texts


def _packed(vector: list[Any]) -> str:
    """A vector as OpenAI packs it: little-endian floats of 32 bits in base64."""
    floats = array.array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return base64.b64encode(floats.tobytes()).decode()


def _shallow(body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer without its numbers, of which there are many."""
    first = [{**object_of(item), "values": None} for item in list_of(body.get("embeddings"))[:1]]
    return {**body, "embeddings": first}
