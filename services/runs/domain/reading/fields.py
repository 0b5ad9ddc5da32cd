"""Reads one object of a document field by field and collects what is wrong with it instead of stopping there.

    fields = Fields(value, "/production/budget", faults)
    cost = fields.amount("cost")
    fields.close()                       # names every field that nobody asked for

A field that is wrong is reported and read as its default, so that the faults after it are found too.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from services.runs.domain.reading.notation import amount_of, duration_of, is_number

Faults = list[tuple[str, str]]
"""(JSON pointer, reason) in the order found."""

ROOT = "/production"
"""Where the document stands in the body of a request."""
LONGEST_TEXT = 1000
E = TypeVar("E", bound=StrEnum)


def pointer_to(parent: str, name: str | int) -> str:
    """The JSON pointer of a member (RFC 6901)."""
    return f"{parent}/{str(name).replace('~', '~0').replace('/', '~1')}"


def texts_in(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Every text of a value with its pointer."""
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from texts_in(inner, pointer_to(pointer, name))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from texts_in(inner, pointer_to(pointer, index))


def kind_of(value: Any) -> str:
    """What JSON calls it, for a reason."""
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", tuple: "a list"}
    return "null" if value is None else "an object" if isinstance(value, Mapping) else names.get(type(value), "that")


class Fields:
    """One object of a document at its pointer."""

    def __init__(self, value: Mapping[str, Any], pointer: str, faults: Faults) -> None:
        self.pointer = pointer
        self.faults = faults
        self.value = value
        self._asked: set[str] = set()

    @staticmethod
    def of(value: Any, pointer: str, faults: Faults) -> "Fields | None":
        """The reader of a value; None, and a fault, if it is no object."""
        if isinstance(value, Mapping):
            return Fields(value, pointer, faults)
        faults.append((pointer, f"must be an object, not {kind_of(value)}"))
        return None

    def at(self, name: str | int) -> str:
        """The pointer of a field."""
        return pointer_to(self.pointer, name)

    def fault(self, name: str | int, reason: str) -> None:
        """Report a field."""
        self.faults.append((self.at(name), reason))

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        self._asked.add(name)
        return self.value.get(name) is not None

    def close(self, elsewhere: Mapping[str, str] | None = None) -> None:
        """Name the fields that nobody asked for; `elsewhere` says of some where they belong."""
        for name in self.value:
            if name not in self._asked:
                hint = (elsewhere or {}).get(name, f"known here are {', '.join(sorted(self._asked))}")
                self.fault(name, f"is not a field of this; {hint}")

    def anything(self, name: str) -> Any:
        """The value as it stands, None where there is none."""
        self._asked.add(name)
        return self.value.get(name)

    def text(self, name: str, default: str | None = None, longest: int = LONGEST_TEXT) -> str:
        """A text that is not empty; required where there is no default."""
        value = self.anything(name)
        if value is None:
            if default is None:
                self.fault(name, "is required: write a text")
            return default or ""
        if not isinstance(value, str):
            self.fault(name, f"must be a text, not {kind_of(value)}; put it in quotes")
        elif not value.strip():
            self.fault(name, "must not be empty")
        elif len(value) > longest:
            self.fault(name, f"must have at most {longest} characters, not {len(value)}")
        else:
            return value
        return default or ""

    def choice(self, name: str, kind: type[E], default: E) -> E:
        """One of the values of an enum."""
        return kind(self.word(name, tuple(kind), default))

    def word(self, name: str, words: Sequence[str], default: str) -> str:
        """One of some words."""
        value = self.anything(name)
        if value is None:
            return default
        if not isinstance(value, str) or value not in words:
            self.fault(name, f"must be one of {', '.join(words)}")
            return default
        return value

    def flag(self, name: str) -> bool:
        """true or false; false where nothing is said."""
        value = self.anything(name)
        if value is not None and not isinstance(value, bool):
            self.fault(name, f"must be true or false, not {kind_of(value)}")
        return value is True

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number within bounds, both included."""
        value = self.anything(name)
        if value is None:
            return default
        if not is_number(value) or int(value) != value or not low <= value <= high:
            self.fault(name, f"must be a whole number from {low} to {high}")
            return default
        return int(value)

    def amount(self, name: str) -> Decimal | None:
        """An exact decimal amount above 0; None where there is none."""
        value = self.anything(name)
        if value is None:
            return None
        amount = amount_of(value)
        if not amount:
            self.fault(name, 'must be a decimal amount above 0 with at most 9 decimals, for example "12.50"')
            return None
        return amount

    def duration(self, name: str) -> timedelta | None:
        """A duration; None where there is none."""
        value = self.anything(name)
        if value is None:
            return None
        duration = duration_of(value)
        if duration is None:
            self.fault(name, "must be a duration above 0 and at most 366 days: 90s, 30m, 4h, 2d or a number of seconds")
        return duration

    def object(self, name: str) -> Mapping[str, Any]:
        """An object as it stands, empty where there is none."""
        value = self.anything(name)
        if value is not None and not isinstance(value, Mapping):
            self.fault(name, f"must be an object, not {kind_of(value)}")
        return value if isinstance(value, Mapping) else {}

    def nested(self, name: str) -> "Fields | None":
        """The reader of an object inside; None where there is none."""
        return Fields.of(self.value[name], self.at(name), self.faults) if self.has(name) else None

    def list(self, name: str) -> Sequence[Any]:
        """A list as it stands, empty where there is none."""
        value = self.anything(name)
        if value is not None and not isinstance(value, (list, tuple)):
            self.fault(name, f"must be a list, not {kind_of(value)}")
        return value if isinstance(value, (list, tuple)) else ()
