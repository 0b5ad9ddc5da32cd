"""What changed between two imports: versions that rise, and prices that moved by more than a share.

Laws of this file:
- a rule whose prices are the same keeps its version; one whose prices changed gets the next, so that what was quoted
  is settled by what was quoted;
- a rule that the new table does not have is told as gone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cli.pricelist.importing import Rule, amounts_in

NO_PRICE = frozenset({"version", "source", "source_hash", "note"})


@dataclass(frozen=True, slots=True)
class Change:
    """`what` is `new`, `gone`, `changed` or `reshaped`; `share` is the largest relative change of a price with
    `changed`."""

    id: str
    what: str
    share: Decimal = Decimal(0)
    words: str = ""


def continued(rules: Iterable[Rule], before: Mapping[str, Rule]) -> list[Rule]:
    """The rules with the versions that follow those of the last import."""
    found = []
    for rule in rules:
        old = before.get(rule["id"])
        if old is not None:
            version = int(old.get("version", 1))
            rule = {**rule, "version": version if _priced(old) == _priced(rule) else version + 1}
        found.append(rule)
    return found


def changes(rules: Iterable[Rule], before: Mapping[str, Rule], more_than: Decimal) -> list[Change]:
    """Every rule that is new, gone or of another shape, and those with a price that moved by more than that share."""
    found = []
    now = {rule["id"]: rule for rule in rules}
    for name, rule in now.items():
        old = before.get(name)
        if old is None:
            found.append(Change(name, "new"))
        elif _priced(old) != _priced(rule):
            change = _moved(name, old, rule)
            if change.what == "reshaped" or change.share > more_than:
                found.append(change)
    return found + [Change(name, "gone") for name in before if name not in now]


def _moved(name: str, old: Rule, new: Rule) -> Change:
    were, are = amounts_in(old), amounts_in(new)
    if len(were) != len(are) or were == are:
        return Change(name, "reshaped")
    pairs = [(was, now) for was, now in zip(were, are, strict=True) if was != now]
    was, now = max(pairs, key=lambda pair: _share(*pair))
    return Change(name, "changed", _share(was, now), f"{was:f} -> {now:f}")


def _share(was: Decimal, now: Decimal) -> Decimal:
    return abs(now - was) / was if was else Decimal("Infinity")


def _priced(rule: Rule) -> dict[str, Any]:
    return {name: value for name, value in rule.items() if name not in NO_PRICE}
