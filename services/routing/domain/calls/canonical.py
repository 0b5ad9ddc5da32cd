"""The key of the response cache (SYN-10). Pure.

Equal keys mean: the same Public Model in the same revision, asked for the same thing in the same way. What does not
change an answer (who asked, and in which spelling of JSON) is left out; the tenant is no part of the key but of the
shelf, so that no key of one tenant leads to an answer of another.
"""

from collections.abc import Mapping
from typing import Any

from libs.kernel.canonical import digest
from services.routing.domain.catalog import Model
from services.routing.domain.request import Request

BESIDE = frozenset({"stream", "stream_options", "user", "metadata", "store"})
"""Fields that say nothing of the answer."""
COMPLETE = frozenset({"", "stop", "tool_calls", "function_call"})
"""Reasons to stop of an answer that is whole; one that was cut off or filtered is not kept."""
LARGEST_BYTES = 1_000_000


def cache_key(model: Model, request: Request, given: Mapping[str, Any], streamed: bool) -> str:
    """SHA-256 in hexadecimal. Streams are kept apart: their pieces are given again as they came."""
    asked = {name: value for name, value in given.items() if name not in BESIDE and value is not None}
    parts = [model.id, model.revision, model.policy, request.degradation, request.billing_mode, streamed, asked]
    return digest(parts)


def cache_ttl_s(model: Model) -> float:
    """How long answers of a model are kept; 0 = not at all."""
    return float(model.cache.get("ttl_s") or 0.0)


def is_worth_keeping(finish_reason: str, degraded: bool, size: int) -> bool:
    """Only complete successes in full quality, and none that is very large."""
    return finish_reason in COMPLETE and not degraded and size <= LARGEST_BYTES
