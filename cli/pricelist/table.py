"""LiteLLM's public price table (`model_prices_and_context_window.json`), as far as it states prices.

Laws of this file:
- a number of the table is the shortest decimal that is that number, `Decimal(str(x))`, never the binary fraction;
- a field counts as read once it was asked for; what was not read is told.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

NO_MODELS = frozenset({"sample_spec", "fallback_generalizations"})
PRICE_FIELD = re.compile(r"cost|pricing|multiplier")


class TableError(ValueError):
    """A file that is no such table."""


def read_table(data: bytes) -> dict[str, dict[str, Any]]:
    """Entries by model. Raises TableError."""
    try:
        found = json.loads(data)
    except ValueError as error:
        raise TableError(f"is no JSON: {error}") from None
    if not isinstance(found, dict) or not any(isinstance(entry, dict) for entry in found.values()):
        raise TableError("is no table: one object of model names is expected")
    return {name: entry for name, entry in found.items() if isinstance(entry, dict) and name not in NO_MODELS}


def resolved(table: Mapping[str, Mapping[str, Any]], name: str) -> Mapping[str, Any] | str:
    """The entry that prices the model, through its aliases; or why there is none."""
    seen = [name]
    entry = table[name]
    while "alias_of" in entry:
        target = str(entry["alias_of"])
        if target in seen:
            return f"its aliases lead in a circle: {' -> '.join([*seen, target])}"
        if target not in table:
            return f"it is an alias of {target}, which the table does not have"
        seen.append(target)
        entry = table[target]
    return entry


def fingerprint(entry: Mapping[str, Any]) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of the entry's prices: equal prices, equal digits."""
    prices = {key: value for key, value in entry.items() if PRICE_FIELD.search(key) or key == "deprecation_date"}
    return hashlib.sha256(json.dumps(prices, sort_keys=True, default=str).encode()).hexdigest()[:16]


class Entry:
    """One model's prices, which remembers what was asked for."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields
        self.mode = str(fields.get("mode") or "")
        self._asked: set[str] = set()

    def price(self, name: str) -> Decimal | None:
        """A price that is stated; None where it is not."""
        self._asked.add(name)
        return amount_of(self.fields.get(name))

    def anything(self, name: str) -> Any:
        """A field as it stands."""
        self._asked.add(name)
        return self.fields.get(name)

    def states(self, *names: str) -> bool:
        """Whether any of these prices is stated; asking does not read them."""
        return any(amount_of(self.fields.get(name)) is not None for name in names)

    def matching(self, pattern: str) -> Iterator["re.Match[str]"]:
        """Fields of that form."""
        compiled = re.compile(pattern)
        return (found for name in self.fields if (found := compiled.fullmatch(name)))

    def unread(self) -> list[str]:
        """Prices that nobody asked for and that are not zero."""
        names = (name for name in self.fields if PRICE_FIELD.search(name) and name not in self._asked)
        return sorted(name for name in names if not is_nothing(self.fields[name]))


def amount_of(value: Any) -> Decimal | None:
    """A number of the table as a decimal; None for what is no price."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    amount = Decimal(str(value))
    return amount if amount.is_finite() and amount >= 0 else None


def is_nothing(value: Any) -> bool:
    """Zero, or a mapping of zeros."""
    if isinstance(value, Mapping):
        return all(is_nothing(item) for item in value.values())
    return value is None or amount_of(value) == 0


def text_of(amount: Decimal) -> str:
    """Plain digits, without needless zeros."""
    return format(amount.normalize(), "f")
