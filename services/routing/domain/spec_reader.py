"""Reads one declaration field by field and collects what is wrong with it instead of stopping at the first fault.

    reader = SpecReader(value, "supplies[0]", faults)
    channel = reader.text("channel")
    reader.close()                       # names every field that nobody asked for

A field that is wrong is reported and read as its default, so that the faults after it are found too.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, TypeVar

Faults = list[tuple[str, str]]
"""(path, reason) in the order found."""

IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+/-]{0,199}")
E = TypeVar("E", bound=StrEnum)
NOTHING: Mapping[str, Any] = {}


class SpecReader:
    """One mapping of a catalogue file at its path."""

    def __init__(self, value: Any, path: str, faults: Faults) -> None:
        self.path = path
        self.faults = faults
        self.asked: set[str] = set()
        self.value: Mapping[str, Any] = value if isinstance(value, Mapping) else NOTHING
        if not isinstance(value, Mapping):
            faults.append((path or "the file", f"must be a mapping, not {_kind_of(value)}"))

    def at(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def fault(self, name: str, reason: str) -> None:
        """Report a field."""
        self.faults.append((self.at(name), reason))

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.value.get(name) is not None

    def close(self, also: Iterable[str] = ()) -> None:
        """Name the fields that nobody asked for."""
        known = self.asked.union(also)
        for name in self.value:
            if name not in known:
                self.fault(str(name), f"is not a known field; known are {', '.join(sorted(known))}")

    def identifier(self, name: str = "id") -> str:
        """A required id."""
        text = self.text(name)
        if text and not IDENTIFIER.fullmatch(text):
            self.fault(name, "must begin with a letter or digit and hold only letters, digits and . _ : @ + / -")
        return text

    def text(self, name: str, default: str | None = None) -> str:
        """A text; required where there is no default."""
        value = self._take(name)
        if value is None:
            if default is None:
                self.fault(name, "is required")
            return default or ""
        if not isinstance(value, str):
            self.fault(name, f'must be a text, not {_kind_of(value)}; write "{value}"')
            return default or ""
        if default is None and not value:
            self.fault(name, "must not be empty")
        return str(value)

    def choice(self, name: str, kind: type[E], default: E | None = None) -> E:
        """One of the values of an enum; required where there is no default."""
        value = self._take(name)
        if value is None and default is not None:
            return default
        try:
            return kind(value)
        except ValueError:
            said = "is required" if value is None else f"must not be {value!r}"
            self.fault(name, f"{said}; one of {', '.join(kind)}")
            return default if default is not None else next(iter(kind))

    def word(self, name: str, words: Sequence[str], default: str) -> str:
        """One of these words."""
        value = self._take(name)
        if value is None:
            return default
        if value not in words:
            self.fault(name, f"must not be {value!r}; one of {', '.join(words)}")
            return default
        return str(value)

    def flag(self, name: str, default: bool) -> bool:
        """true or false."""
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fault(name, f"must be true or false, not {value!r}")
            return default
        return value

    def whole(self, name: str, default: int, low: int = 0, high: int = 2**31 - 1) -> int:
        """A whole number within bounds, both included."""
        value = self._take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault(name, f"must be a whole number, not {_kind_of(value)}")
            return default
        if not low <= value <= high:
            self.fault(name, f"must be from {low} to {high}, not {value}")
            return default
        return value

    def number(self, name: str, default: float, low: float = 0.0, high: float = 1e9, above: bool = True) -> float:
        """A number within bounds; `above` = the lower bound itself is refused. Seconds may be decimals."""
        value = self._take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fault(name, f"must be a number, not {_kind_of(value)}")
            return default
        if value > high or value < low or (above and value == low):
            self.fault(name, f"must be {'above' if above else 'at least'} {low:g} and at most {high:g}, not {value:g}")
            return default
        return float(value)

    def amount(self, name: str, default: Decimal, above_zero: bool = False) -> Decimal:
        """A decimal amount: a text, or a whole number. A float is refused: it is not the number that was meant."""
        value = self._take(name)
        if value is None:
            return default
        found = amount_fault(value)
        if found:
            self.fault(name, found)
            return default
        amount = Decimal(str(value))
        if above_zero and amount == 0:
            self.fault(name, "must be above 0")
        return amount

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; empty where absent."""
        value = self._take(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.fault(name, f"must be a list, not {_kind_of(value)}")
            return ()
        for index, item in enumerate(value):
            if not isinstance(item, str) or not item:
                self.fault(f"{name}[{index}]", f'must be a text; write "{item}"')
        return tuple(item for item in value if isinstance(item, str))

    def nested(self, name: str) -> "SpecReader | None":
        """A mapping inside; None where absent."""
        value = self._take(name)
        return None if value is None else SpecReader(value, self.at(name), self.faults)

    def items(self, name: str) -> list["SpecReader"]:
        """A list of mappings; empty where absent."""
        value = self._take(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fault(name, f"must be a list, not {_kind_of(value)}")
            return []
        return [SpecReader(item, f"{self.at(name)}[{index}]", self.faults) for index, item in enumerate(value)]

    def anything(self, name: str) -> Any:
        """The value as it stands."""
        return self._take(name)

    def _take(self, name: str) -> Any:
        self.asked.add(name)
        return self.value.get(name)


def amount_fault(value: Any) -> str:
    """Why this is no exact decimal amount of at least 0; empty if it is one."""
    if isinstance(value, float):
        return f'must be exact: write "{value:g}", with the quotes'
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return f'must be a decimal number as text, for example "1.50", not {_kind_of(value)}'
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return f'must be a decimal number as text, for example "1.50", not {value!r}'
    if not amount.is_finite() or amount < 0 or amount >= Decimal("1e12"):
        return f"must be at least 0 and below 1e12, not {value!r}"
    return ""


def _kind_of(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", bool: "a flag", int: "a number", float: "a number"}
    return names.get(type(value), "nothing" if value is None else type(value).__name__)
