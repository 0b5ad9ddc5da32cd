"""Our books next to the providers': how often each account was asked for a job, and for how much money."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cli.demo.facts import Facts

RATES = {"CNY": Decimal(1), "USD": Decimal("7.00")}
TAKEN = frozenset({"accepted", "running", "succeeded"})


@dataclass(frozen=True, slots=True)
class Line:
    """One account in both books; money in CNY."""

    account: str
    ours: int
    theirs: int
    our_cost: Decimal
    their_charge: Decimal


def compare(tasks: Iterable[Mapping[str, Any]], ledger: Mapping[str, Any], facts: Facts) -> list[Line]:
    """A line for each account; notes whether both books agree and whether anything was sent twice."""
    ours: Counter[str] = Counter()
    costs: dict[str, Decimal] = {}
    for task in tasks:
        for attempt in task["attempts"]:
            channel = attempt["channel"]
            ours[channel] += attempt["state"] in TAKEN
            if attempt["cost"]:
                costs[channel] = costs.get(channel, Decimal(0)) + in_cny(attempt["cost"])
    theirs = Counter(item["account"] for item in ledger["submissions"])
    charges: dict[str, Decimal] = {}
    for item in ledger["submissions"]:
        charges[item["account"]] = charges.get(item["account"], Decimal(0)) + in_cny(item["charged"])
    names = sorted(set(ours) | set(theirs))
    lines = [Line(n, ours[n], theirs[n], costs.get(n, Decimal(0)), charges.get(n, Decimal(0))) for n in names]
    facts.equal("submissions: our count and the providers'", sum(ours.values()), sum(theirs.values()))
    differing = [line.account for line in lines if line.ours != line.theirs]
    facts.equal("accounts whose counts differ", differing, [])
    facts.equal("accounts whose money differs", [i.account for i in lines if i.our_cost != i.their_charge], [])
    facts.equal("requests that reached a provider twice", ledger["posts"]["repeated"], {})
    return lines


def in_cny(money: Mapping[str, str] | None) -> Decimal:
    """An amount in the demonstration's currency."""
    return Decimal(money["amount"]) * RATES[money["currency"]] if money else Decimal(0)
