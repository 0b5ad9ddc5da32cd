"""How a budget is declared, and how a person changes its limits. Pure."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from libs.faults.fault import Fault
from libs.kernel.canonical import digest
from services.cost_quote.domain.budgets import (
    COUNTED,
    NOTHING,
    Amounts,
    Budget,
    ChangeAsk,
    Declaration,
    Entry,
    EntryKind,
    Limits,
)
from services.cost_quote.domain.ledger import soft_reached

DEEPEST = 16
"""Levels of a tree: every Hold moves them all."""
LONGEST_ID = 200


def declared(declaration: Declaration, parent: Budget | None, now: datetime) -> Budget:
    """The new budget under its parent. Fault `validation_failed` names every field that cannot be.

    `parent` is None where there is none of that id.
    """
    faults = _faults(declaration, parent)
    if faults:
        raise Fault.invalid(*faults)
    return Budget(
        id=declaration.id,
        parent_id=declaration.parent_id,
        path=(*(parent.path if parent else ()), declaration.id),
        level=declaration.level,
        tenant=declaration.tenant or (parent.tenant if parent else ""),
        value_class=declaration.value_class,
        currency=declaration.currency or (parent.currency if parent else ""),
        declaration=digest(declaration),
        hard=declaration.hard,
        soft=declaration.soft,
        deadline_at=declaration.deadline_at,
        created_at=now,
    )


def same_again(known: Budget, declaration: Declaration) -> Budget:
    """The budget as it is now. Fault `already_exists` where it was declared in other words."""
    if known.declaration != digest(declaration):
        raise Fault.of("already_exists", f"budget '{known.id}' exists and was declared otherwise")
    return known


def _faults(told: Declaration, parent: Budget | None) -> list[tuple[str, str]]:
    faults = [(f"/budget/{name}", "is required") for name in ("id", "level") if not getattr(told, name)]
    for name in ("id", "parent_id", "level", "tenant"):
        text = getattr(told, name)
        if len(text) > LONGEST_ID or "\0" in text:
            faults.append((f"/budget/{name}", f"must be a text of at most {LONGEST_ID} characters without NUL"))
    if told.parent_id and parent is None:
        reason = "is the budget itself" if told.parent_id == told.id else f"names no budget: '{told.parent_id}'"
        faults.append(("/budget/parent_id", f"{reason}; make parents before their children"))
    if parent is not None:
        if told.currency not in ("", parent.currency):
            faults.append(("/budget/currency", f"must be the parent's, {parent.currency}, or be left out"))
        if told.tenant and parent.tenant and told.tenant != parent.tenant:
            faults.append(("/budget/tenant", f"must be the parent's, '{parent.tenant}', or be left out"))
        if len(parent.path) >= DEEPEST:
            faults.append(("/budget/parent_id", f"is at level {DEEPEST}, below which there are no more"))
    elif not told.parent_id and not _is_currency(told.currency):
        faults.append(("/budget/currency", f"must be three capital letters, not {told.currency!r}"))
    currency = told.currency or (parent.currency if parent else "")
    for name, limit, said in (("hard", told.hard, told.hard_currency), ("soft", told.soft, told.soft_currency)):
        faults += _limit_faults(f"/budget/{name}", limit, said, currency)
    return faults + _order_faults("/budget/soft", told.hard, told.soft)


def changed(budget: Budget, ask: ChangeAsk, now: datetime) -> tuple[Budget, Entry]:
    """The budget with its new limits, and the entry of it. Faults `validation_failed`.

    A limit may not be set below what is spent and held under it: to stop spending, set it to just that. Two who change
    different dimensions at once both do.
    """
    hard = _wanted(budget.hard, ask.hard, ask.hard_named, ask.only_raise)
    soft = _wanted(budget.soft, ask.soft, ask.soft_named, ask.only_raise)
    faults = [] if ask.reason.strip() else [("/reason", "is required: who changes the limits, and why")]
    for name, limit, said in (("hard", ask.hard, ask.hard_currency), ("soft", ask.soft, ask.soft_currency)):
        if limit is not None:
            faults += _limit_faults(f"/{name}", limit, said, budget.currency)
    faults += _order_faults("/soft", hard, soft)
    for name in COUNTED:
        if 0 < hard.of(name) < budget.used.of(name) and hard.of(name) != budget.hard.of(name):
            faults.append((f"/hard/{name}", "is below what is spent and held; the least it can be is just that"))
    if faults:
        raise Fault.invalid(*faults)
    limits = Limits(hard, soft, ask.deadline_at or budget.deadline_at)
    new = replace(budget, hard=hard, soft=soft, deadline_at=limits.deadline_at, revision=budget.revision + 1)
    if not soft_reached(new):
        new = replace(new, soft_limit_at=None, soft_limit_by="")
    entry = Entry(
        budget.id, new.revision, EntryKind.LIMIT, "", NOTHING, NOTHING, ask.reason, now, ask.request_id, limits
    )
    return new, entry


def changed_again(budget: Budget, known: Entry, ask: ChangeAsk) -> Budget:
    """The answer to a repeat (COST-10). Fault `conflict` where that request_id changed to other limits: the first
    decision stands."""
    limits = known.limits
    wanted = (
        limits is not None
        and _wanted(limits.hard, ask.hard, ask.hard_named, ask.only_raise) == limits.hard
        and _wanted(limits.soft, ask.soft, ask.soft_named, ask.only_raise) == limits.soft
        and ask.deadline_at in (None, limits.deadline_at)
    )
    if not wanted:
        said = f"the limits of budget '{budget.id}' were changed otherwise under the same key, and that stands"
        raise Fault.of("conflict", f"{said}; read the budget again, and decide anew under another key")
    return budget


def _wanted(present: Amounts, asked: Amounts | None, named: Collection[str], only_raise: bool) -> Amounts:
    """What is not named stays as it is now, whatever it was when whoever asks read it."""
    if asked is None:
        return present
    if only_raise:
        named = [name for name in named if 0 < present.of(name) < asked.of(name) or not asked.of(name)]
    return present.with_those_of(asked, named)


def _limit_faults(at: str, limit: Amounts, said: str, currency: str) -> list[tuple[str, str]]:
    faults = [
        (f"{at}/{name}", "must not be negative; 0 or absent = not limited") for name in COUNTED if limit.of(name) < 0
    ]
    if said and currency and said != currency:
        faults.append((f"{at}/cost/currency", f"must be the budget's, {currency}, not {said}"))
    return faults


def _order_faults(at: str, hard: Amounts, soft: Amounts) -> list[tuple[str, str]]:
    above = [name for name in COUNTED if 0 < hard.of(name) < soft.of(name)]
    return [(f"{at}/{name}", "must not be above the hard limit") for name in above]


def _is_currency(text: str) -> bool:
    return len(text) == 3 and text.isascii() and text.isalpha() and text.isupper()
