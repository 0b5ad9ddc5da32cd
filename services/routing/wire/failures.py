"""A failure of the domain as `common.v1.Failure`, and back."""

from libs.faults.failures import failure_from_proto, failure_to_proto
from libs.faults.fault import Fault
from libs.faults.registry import Category, Scope
from pointsman.common.v1 import failure_pb2
from services.routing.app.desk import failure_of
from services.routing.domain.task import Failure


def to_proto(failure: Failure | None) -> failure_pb2.Failure | None:
    """The message; None for none."""
    if failure is None:
        return None
    return failure_to_proto(
        Fault(
            failure.code,
            failure.message,
            category=Category.of(failure.category),
            scope=Scope.of(failure.scope),
            retryable=failure.retryable,
            retry_after_ms=failure.retry_after_ms,
            provider=failure.provider,
            provider_code=failure.provider_code,
            provider_message=failure.provider_message,
        )
    )


def from_proto(message: failure_pb2.Failure) -> Failure:
    """The value."""
    return failure_of(failure_from_proto(message))
