"""What must hold of every ledger at every commit (COST-11). A finding is a bug, or a hand in the database.

- entries are numbered 1, 2, 3 … up to the budget's revision;
- their sums are what is held and spent, and what is held was never below zero, after whichever entry;
- held is what the open Holds of the branch hold, spent what the settled ones booked;
- spent + held pass no hard limit by more than providers charged beyond their Holds;
- a budget hangs below one that was made before it, in the same currency: no cycles.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from services.cost_quote.domain.budgets import COUNTED, NOTHING, Amounts, Budget, Entry, Hold, HoldState, Mismatch


def check(budgets: Iterable[Budget], holds: Iterable[Hold], entries: Iterable[Entry]) -> list[Mismatch]:
    """Every contradiction, in the order of the budgets; none in a sound ledger."""
    known = {budget.id: budget for budget in budgets}
    of_budget: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        of_budget[entry.budget_id].append(entry)
    held: dict[str, Amounts] = defaultdict(Amounts)
    spent: dict[str, Amounts] = defaultdict(Amounts)
    for hold in holds:
        for name in known[hold.budget_id].path if hold.budget_id else ():
            if hold.state is HoldState.HELD:
                held[name] += hold.amounts
            spent[name] += hold.settled or NOTHING
    return [
        Mismatch(budget.id, what)
        for budget in known.values()
        for what in _contradictions(budget, of_budget[budget.id], held[budget.id], spent[budget.id], known)
    ]


def _contradictions(
    budget: Budget, entries: Sequence[Entry], held: Amounts, spent: Amounts, known: Mapping[str, Budget]
) -> list[str]:
    found = []
    if [entry.sequence for entry in entries] != list(range(1, budget.revision + 1)):
        found.append(f"its entries are not numbered 1 to {budget.revision}")
    sums, paid, beyond = NOTHING, NOTHING, NOTHING
    for entry in entries:
        sums, paid, beyond = sums + entry.held, paid + entry.spent, beyond + entry.beyond
        if sums.above_zero() != sums:
            found.append(f"less than nothing is held after entry {entry.sequence}")
    if (sums, paid) != (budget.held, budget.spent):
        found.append(f"its entries sum up to {sums} held and {paid} spent, not {budget.held} and {budget.spent}")
    if (held, spent) != (budget.held, budget.spent):
        found.append(f"its Holds sum up to {held} held and {spent} spent, not {budget.held} and {budget.spent}")
    for name in COUNTED:
        if 0 < budget.hard.of(name) < budget.used.of(name) - beyond.of(name):
            found.append(f"{name} is beyond the hard limit")
    parent = known.get(budget.parent_id)
    stem = parent.path if parent else ()
    if budget.path != (*stem, budget.id) or bool(parent) != bool(budget.parent_id):
        found.append("it does not hang where its path says")
    elif parent is not None and (parent.currency, parent.number < budget.number) != (budget.currency, True):
        found.append("it differs from its parent in currency, or is older")
    return found
