"""Values that every contract shares, between the wire and our own: money, JSON objects, times.

Total in both directions; an absent message is None on our side. What a message can hold and nothing of ours can, such
as NaN in an object or the year 20000, is refused by Fault validation_failed: it came from a caller.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.type.money_pb2 import Money as MoneyProto

from libs.faults.fault import Fault
from libs.kernel.canonical import plain
from libs.kernel.money import NANOS_PER_UNIT, Money

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_S = 86_400
WHOLE_BELOW = 2**53
"""From here on a float does not tell one whole number from the next."""
END_S = 253_402_300_800
"""The year 10000, in seconds since 1970."""


def struct_to_dict(struct: Struct) -> dict[str, Any]:
    """JSON values; whole numbers become integers again, as they were before the wire made them floats."""
    return {name: _json_of(value) for name, value in struct.fields.items()}


def _json_of(value: Value) -> Any:
    """By hand: protobuf's own way takes four times as long, and every price and every Task has such objects."""
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "number_value":
            return _number(value.number_value)
        case "bool_value":
            return value.bool_value
        case "struct_value":
            return struct_to_dict(value.struct_value)
        case "list_value":
            return [_json_of(item) for item in value.list_value.values]
    return None


def _number(value: float) -> int | float:
    if not isfinite(value):
        raise Fault.of("validation_failed", f"{value} is no number of JSON")
    return int(value) if value.is_integer() and abs(value) < WHOLE_BELOW else value


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
    return None if moment is None else stamp_of(moment)


def stamp_of(moment: datetime) -> Timestamp:
    """To the microsecond. What every message has two of is reckoned here and not by way of a calendar."""
    if moment.tzinfo is None:
        moment = moment.astimezone(UTC)
    since = moment - EPOCH
    return Timestamp(seconds=since.days * DAY_S + since.seconds, nanos=since.microseconds * 1000)


def seconds_to_proto(seconds: float) -> Duration:
    """Seconds, to the nano."""
    return nanos_to_proto(round(seconds * NANOS_PER_UNIT))


def nanos_to_proto(nanos: int) -> Duration:
    """So many nanoseconds."""
    sign = -1 if nanos < 0 else 1
    seconds, rest = divmod(abs(nanos), NANOS_PER_UNIT)
    return Duration(seconds=sign * seconds, nanos=sign * rest)


def seconds_of(duration: Duration) -> float:
    """A length of time in seconds."""
    return duration.seconds + duration.nanos / NANOS_PER_UNIT


def time_from_proto(stamp: Timestamp, at: str = "") -> datetime | None:
    """Aware, in UTC; None where no time was said. (The epoch itself reads as no time: nothing of ours is that old.)

    Fault validation_failed that points `at` a time that no calendar has.
    """
    if stamp.seconds == 0 and stamp.nanos == 0:
        return None
    try:
        return moment_of(stamp)
    except (OverflowError, ValueError):
        raise Fault.invalid((at, "is a time that no calendar has")) from None


def moment_of(stamp: Timestamp) -> datetime:
    """Aware, in UTC, to the whole microsecond. ValueError for a time that no calendar has."""
    seconds, nanos = stamp.seconds, stamp.nanos
    if 0 <= seconds < END_S and 0 <= nanos < 1_000_000_000:
        return EPOCH + timedelta(0, seconds, nanos // 1000)
    return stamp.ToDatetime(tzinfo=UTC)
