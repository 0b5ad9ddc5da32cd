"""Embeddings in the OpenAI dialect: the request, and the vectors as numbers or in base64."""

from __future__ import annotations

import base64
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.studio.domain import tokens
from services.studio.domain.accounts import Model
from services.studio.domain.refusals import Reason, Refusal

FORMATS = ("float", "base64")


@dataclass(frozen=True, slots=True)
class EmbeddingJob:
    """Texts to embed, their tokens together, the length of a vector and how it is written."""

    texts: tuple[str, ...]
    prompt_tokens: int
    dimensions: int
    encoding: str = "float"


def read_embedding(body: Mapping[str, Any], model: Model) -> EmbeddingJob:
    """Reads a request for `model`: a text, texts, or either in token numbers. Raises Refusal."""
    given = body.get("input")
    if given is None:
        raise Refusal(Reason.PARAMETER_MISSING, "Missing required parameter: 'input'.", "input")
    items = given if isinstance(given, list) and not _numbers(given) else [given]
    if not 1 <= len(items) <= model.max_batch:
        raise _invalid("input", f"expected 1 to {model.max_batch} texts")
    read = [_read(item, f"input[{index}]" if isinstance(given, list) else "input") for index, item in enumerate(items)]
    for index, (_, length) in enumerate(read):
        if length > model.context_tokens:
            text = f"Invalid 'input[{index}]': maximum input length is {model.context_tokens} tokens."
            raise Refusal(Reason.PARAMETER_INVALID, text, "input", "context_length_exceeded")
    dimensions = body.get("dimensions")
    if dimensions is None:
        dimensions = model.dimensions
    if not _whole(dimensions) or not 1 <= dimensions <= model.dimensions:
        raise _invalid("dimensions", f"expected a whole number from 1 to {model.dimensions}")
    encoding = body.get("encoding_format") or "float"
    if encoding not in FORMATS:
        raise _invalid("encoding_format", f"supported values are {', '.join(FORMATS)}")
    return EmbeddingJob(tuple(text for text, _ in read), sum(length for _, length in read), dimensions, encoding)


def _read(item: Any, where: str) -> tuple[str, int]:
    """A text and its length in tokens; numbers are words of a language of their own."""
    if isinstance(item, str) and item:
        return item, max(1, tokens.count(item))
    if isinstance(item, list) and item and _numbers(item):
        return " ".join(f"t{number}" for number in item), len(item)
    raise _invalid(where, "expected a string that is not empty, or token numbers")


def embedding_view(model: str, job: EmbeddingJob, vectors: Sequence[Sequence[float]]) -> dict[str, Any]:
    """The answer."""
    data = [
        {"object": "embedding", "index": index, "embedding": _written(vector, job.encoding)}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": job.prompt_tokens, "total_tokens": job.prompt_tokens}
    return {"object": "list", "data": data, "model": model, "usage": usage}


def _written(vector: Sequence[float], encoding: str) -> Any:
    """In single precision either way, so that both forms say the same."""
    single = array("f", vector)
    if encoding == "float":
        return list(single)
    if sys.byteorder == "big":
        single.byteswap()
    return base64.b64encode(single.tobytes()).decode()


def _numbers(items: Sequence[Any]) -> bool:
    return bool(items) and all(map(_whole, items))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _invalid(param: str, hint: str) -> Refusal:
    return Refusal(Reason.PARAMETER_INVALID, f"Invalid value for '{param}': {hint}.", param)
