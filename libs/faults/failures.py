"""Fault as data: `common.v1.Failure`, the form in which a failure is stored or carried inside a message."""

from libs.faults.fault import Fault
from libs.faults.registry import Category, Scope
from libs.telemetry.redaction import redact
from pointsman.common.v1 import failure_pb2

LONGEST_WORDS = 1000
"""Characters of a provider's own words in a sentence."""
_EVIDENCE = "evidence"
_NAMES_OF_CATEGORIES = {number: name for name, number in failure_pb2.FailureCategory.items()}
_NAMES_OF_SCOPES = {number: name for name, number in failure_pb2.FailureScope.items()}


def failure_to_proto(fault: Fault) -> failure_pb2.Failure:
    """The fault as a message. `metadata["evidence"]` travels; other metadata and field errors do not."""
    failure = failure_pb2.Failure(
        category=failure_pb2.FailureCategory.Value(f"FAILURE_CATEGORY_{fault.category.name}"),
        scope=failure_pb2.FailureScope.Value(f"FAILURE_SCOPE_{fault.scope.name}"),
        retryable=fault.retryable,
        code=fault.code,
        message=fault.message,
        provider=fault.provider,
        provider_code=fault.provider_code,
        provider_message=fault.provider_message,
        evidence=fault.metadata.get(_EVIDENCE, ""),
    )
    if fault.retry_after_ms is not None:
        failure.retry_after.FromMilliseconds(fault.retry_after_ms)
    return failure


def failure_from_proto(failure: failure_pb2.Failure) -> Fault:
    """The inverse of `failure_to_proto`; enum values from a later release read as `unknown` and `request`."""
    category = _NAMES_OF_CATEGORIES.get(failure.category, "")
    scope = _NAMES_OF_SCOPES.get(failure.scope, "")
    return Fault(
        failure.code,
        failure.message,
        category=Category.of(category.removeprefix("FAILURE_CATEGORY_").lower()),
        scope=Scope.of(scope.removeprefix("FAILURE_SCOPE_").lower()),
        retryable=failure.retryable,
        retry_after_ms=failure.retry_after.ToMilliseconds() if failure.HasField("retry_after") else None,
        provider=failure.provider,
        provider_code=failure.provider_code,
        provider_message=failure.provider_message,
        metadata={_EVIDENCE: failure.evidence} if failure.evidence else {},
    )


def sentence(fault: Fault) -> str:
    """What callers are told: our sentence, and behind it the provider's own words, redacted, where they say more."""
    words = redact(fault.provider_message).strip()[:LONGEST_WORDS]
    return f"{fault.message}; the provider said: {words}" if words and words not in fault.message else fault.message
