"""A synchronous request at the door (SEL-1, SEL-2, SYN-12): as `domain.admission`, for input that is not copied."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from libs.faults.fault import Fault
from services.routing.domain.admission import beyond_limits, usable_model
from services.routing.domain.calls.sizing import digest_of
from services.routing.domain.catalog import Catalog, Kind, Model, Supply
from services.routing.domain.input_shape import complaints, option_complaints, without
from services.routing.domain.request import Request
from services.routing.domain.request_facts import facts_of, normalised

STREAMED = frozenset({Kind.CHAT})
"""Kinds whose output comes piece by piece."""

NUMBERS_AT_MOST = 10_000_000
"""Of all vectors of one answer together: as text some 25 bytes each, which one message between contexts can carry."""
BATCHES_AT_MOST = 512
"""Provider calls that one call is split into: no timeout leaves room for more, and each keeps all before it."""
LONGEST_VECTOR = 3072
"""What is reckoned with where a caller does not say `dimensions`."""


def admit_call(
    catalog: Catalog, request: Request, kind: str = "", streamed: bool = False, tried: Model | None = None
) -> tuple[Model, Request]:
    """The model, and the request with the digest of its input. Faults as `domain.admission.admit`.

    `tried` is the model where it is known already: that of a trial, which nobody publishes (CAT-7).
    `kind` is what the caller means; a model of another kind is refused, as is a kind that is not synchronous.
    """
    model = tried or usable_model(catalog, request)
    if model.kind is Kind.VIDEO:
        raise Fault.invalid(("/model", f"{model.id!r} makes video, which is no synchronous kind: create a run"))
    if kind and kind != model.kind:
        raise Fault.invalid(("/model", f"{model.id!r} is of kind {model.kind}, not {kind}"))
    if streamed and model.kind not in STREAMED:
        raise Fault.invalid(("/model", f"{model.id!r} is of kind {model.kind}, which is not streamed"))
    given = request.input
    wrong = complaints(model.kind, given)
    sound = without(given, wrong, model.kind) if wrong else given
    digest = normalised(model.kind, model.limits, digest_of(model.kind, sound))
    found = [
        *wrong,
        *beyond_an_answer(model.kind, digest),
        *beyond_batches([catalog.supplies.get(item.supply) for item in model.bindings], digest),
        *beyond_limits(model, facts_of(model.kind, digest)),
        *option_complaints(request),
    ]
    if found:
        raise Fault.invalid(*found)
    return model, request.with_input(digest)


def beyond_an_answer(kind: Kind, digest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Vectors that no answer could carry are refused before they are paid for."""
    if kind is Kind.EMBEDDING and isinstance(texts := digest.get("input"), Mapping):
        numbers = digest.get("dimensions") or LONGEST_VECTOR
        most = max(1, int(NUMBERS_AT_MOST // numbers))  # one text alone is for the supply to judge
        if texts["count"] > most:
            yield "/input/input", f"has {texts['count']} texts, at most {most} of {numbers:g} dimensions fit one answer"


def beyond_batches(bound: Sequence[Supply | None], digest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """More texts than the Supply that takes most at once could be given (SYN-11)."""
    batches = [supply.capabilities.get("max_batch") for supply in bound if supply and supply.kind is Kind.EMBEDDING]
    limits = [int(most) for most in batches if most]
    if not limits or len(limits) < len(batches) or not isinstance(texts := digest.get("input"), Mapping):
        return
    each = max(limits)
    if texts["count"] > each * BATCHES_AT_MOST:
        yield (
            "/input/input",
            f"has {texts['count']} texts, at most {each * BATCHES_AT_MOST} are taken: "
            f"{BATCHES_AT_MOST} provider calls of {each} texts; send them in several calls",
        )
