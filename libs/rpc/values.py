"""Values that every contract shares, between the wire and our own: money, JSON objects, times.

Total in both directions; an absent message is None on our side.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from google.type.money_pb2 import Money as MoneyProto

from libs.kernel.canonical import plain
from libs.kernel.money import NANOS_PER_UNIT, Money


def struct_to_dict(struct: Struct) -> dict[str, Any]:
    """JSON values; whole numbers become integers again, as they were before the wire made them floats."""
    value: dict[str, Any] = plain(MessageToDict(struct))
    return value


def struct_from(value: Mapping[str, Any]) -> Struct:
    """A JSON object. Decimals and times become text, as everywhere in our JSON."""
    struct = Struct()
    struct.update(plain(value))
    return struct


def money_to_proto(money: Money | None) -> MoneyProto | None:
    """Units and nanos of one sign."""
    if money is None:
        return None
    nanos = money.to_nanos()
    sign = -1 if nanos < 0 else 1
    units, rest = divmod(abs(nanos), NANOS_PER_UNIT)
    return MoneyProto(currency_code=money.currency, units=sign * units, nanos=sign * rest)


def money_from_proto(money: MoneyProto) -> Money | None:
    """None where no money was said."""
    if not money.currency_code:
        return None
    return Money.from_nanos(money.currency_code, money.units * NANOS_PER_UNIT + money.nanos)


def time_to_proto(moment: datetime | None) -> Timestamp | None:
    """To the microsecond."""
    if moment is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(moment.astimezone(UTC))
    return stamp


def time_from_proto(stamp: Timestamp) -> datetime | None:
    """Aware, in UTC; None where no time was said. (The epoch itself reads as no time: nothing of ours is that old.)"""
    if stamp.seconds == 0 and stamp.nanos == 0:
        return None
    return stamp.ToDatetime(tzinfo=UTC)
