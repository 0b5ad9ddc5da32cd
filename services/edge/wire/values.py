"""Values that all shapes share."""

from datetime import datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from google.type.money_pb2 import Money as MoneyProto

from libs.faults.failures import failure_from_proto, sentence
from libs.rpc.values import money_from_proto, time_from_proto
from pointsman.common.v1 import artifact_pb2, failure_pb2
from services.edge.domain import shapes

NO_CURRENCY = 3 * "X"
"""ISO 4217's code for no currency: nothing was spent yet."""


def amount(money: MoneyProto) -> shapes.Amount | None:
    """None where no money was said, or none of any currency."""
    value = money_from_proto(money)
    if value is None or value.currency == NO_CURRENCY:
        return None
    told = value.to_json()
    return shapes.Amount(told["currency"], told["amount"])


def moment(stamp: Timestamp) -> datetime | None:
    """Aware, in UTC; None where no time was said."""
    return time_from_proto(stamp)


def failure(message: Any) -> shapes.Failure | None:
    """The failure in the field `failure` of a message, None where there is none."""
    return failure_of(message.failure) if message.HasField("failure") else None


def failure_of(told: failure_pb2.Failure) -> shapes.Failure:
    """A failure as callers see it."""
    fault = failure_from_proto(told)
    return shapes.Failure(fault.code, sentence(fault), fault.retryable, fault.category.value, fault.scope.value)


def artifact(message: artifact_pb2.Artifact) -> shapes.ArtifactRef:
    """A stored file and where it is read."""
    return shapes.ArtifactRef(message.sha256, message.media_type, message.size_bytes, f"/v1/artifacts/{message.sha256}")


def word(enum: Any, number: int, prefix: str) -> str:
    """The name of an enum's value in our lower-case words; a number of a later release reads `unknown`."""
    if number not in enum.values():
        return "unknown"
    name: str = enum.Name(number)
    return name.removeprefix(prefix).lower()
