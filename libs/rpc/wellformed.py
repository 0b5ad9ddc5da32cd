"""What no message from outside may hold, wherever it stands: found once at the door, told with its field.

| what | why |
|---|---|
| a number that its enumeration does not know | nobody could say what it means |
| a Timestamp or Duration that is none | its nanos or seconds are beyond what the type allows |
| money without a currency code or with nanos that contradict its units | no amount |
| a number that is not finite | JSON has no word for it |
| a NUL character | PostgreSQL keeps it in no text |
"""

from collections.abc import Iterator
from math import isfinite
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from libs.faults.fault import Fault

NANOS = 1_000_000_000
FIRST_S, LAST_S = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, in seconds since 1970: what a Timestamp may hold."""
LONGEST_S = 315_576_000_000
"""Ten thousand years: what a Duration may hold."""
MOST_FAULTS = 20
MOST_VALUES = 100_000
"""Messages within a message: each value of a JSON object is one."""
_REALS = frozenset({FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT})


def check_message(message: Any) -> None:
    """Raise Fault validation_failed with every field that holds such a thing, by JSON pointer; payload_too_large for
    more values than anybody looks through while others wait."""
    faults = [found for found, _ in zip(_faults(message, "", _Count()), range(MOST_FAULTS), strict=False)]
    if faults:
        raise Fault.invalid(*faults)


class _Count:
    """Of the messages that were looked at."""

    def __init__(self) -> None:
        self._seen = 0

    def another(self) -> None:
        """One more."""
        self._seen += 1
        if self._seen > MOST_VALUES:
            raise Fault.of("payload_too_large", f"the request holds more than {MOST_VALUES} values; send fewer at once")


def _faults(message: Any, pointer: str, count: _Count) -> Iterator[tuple[str, str]]:
    count.another()
    judge = _JUDGES.get(message.DESCRIPTOR.full_name)
    if judge is not None and (reason := judge(message)):
        yield pointer, reason
        return
    for field, value in message.ListFields():
        at = f"{pointer}/{field.name}"
        if not field.is_repeated:
            yield from _of_value(field, value, at, count)
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            of_value = field.message_type.fields_by_name["value"]
            for key, item in value.items():
                yield from _of_text(str(key), at)
                yield from _of_value(of_value, item, f"{at}/{_escaped(str(key))}", count)
        else:
            for index, item in enumerate(value):
                yield from _of_value(field, item, f"{at}/{index}", count)


def _of_value(field: Any, value: Any, at: str, count: _Count) -> Iterator[tuple[str, str]]:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        yield from _faults(value, at, count)
    elif field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        if value not in field.enum_type.values_by_number:
            known = ", ".join(name for number, name in _names(field.enum_type) if number)
            yield at, f"is no {field.enum_type.name}: {value}; one of {known}"
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING and isinstance(value, str):
        yield from _of_text(value, at)
    elif field.cpp_type in _REALS and not isfinite(value):
        yield at, "must be a finite number"


def _of_text(value: str, at: str) -> Iterator[tuple[str, str]]:
    if "\0" in value:
        yield at, "holds a NUL character, and none can be kept"


def _names(enum: Any) -> list[tuple[int, str]]:
    return [(value.number, value.name) for value in enum.values]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _of_timestamp(value: Any) -> str:
    if FIRST_S <= value.seconds <= LAST_S and 0 <= value.nanos < NANOS:
        return ""
    return "is no time: seconds from the year 1 to 9999 and nanos from 0 to 999999999"


def _of_duration(value: Any) -> str:
    fits = abs(value.seconds) <= LONGEST_S and abs(value.nanos) < NANOS and value.seconds * value.nanos >= 0
    return "" if fits else "is no length of time: nanos below a second, of the sign of its seconds"


def _of_money(value: Any) -> str:
    code = value.currency_code
    if len(code) != 3 or not (code.isascii() and code.isalpha() and code.isupper()):
        return f"needs a currency of three capital letters, not {code[:10]!r}"
    fits = abs(value.nanos) < NANOS and value.units * value.nanos >= 0
    return "" if fits else "is no amount: nanos below one unit, of the sign of its units"


_JUDGES = {
    "google.protobuf.Timestamp": _of_timestamp,
    "google.protobuf.Duration": _of_duration,
    "google.type.Money": _of_money,
}
