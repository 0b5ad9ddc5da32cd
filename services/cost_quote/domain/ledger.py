"""The ledger: what a Hold does to every level of its branch. Every backend answers as these functions do.

Laws of this file:
- a Hold is taken at every level in one decision or at none, and a refusal moves nothing (COST-9);
- spent + held never pass a hard limit by a Hold. What a provider charged is booked whatever the limit says, and told;
- a Hold's id names one request for ever: the same again is the same Hold, another is a conflict, and after a release,
  also of a Hold that was never seen, it takes nothing any more; it may grow by money while it is held;
- a soft limit is told once: by the movement that reached it, and by the repeats of that one;
- every movement is an entry at every level, numbered without a gap; no entry is changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.cost_quote.domain.budgets import (
    COUNTED,
    NOTHING,
    Amounts,
    Asked,
    Budget,
    EnlargeAsk,
    Entry,
    EntryKind,
    Hold,
    HoldAsk,
    HoldState,
    Moved,
    Refusal,
    Refused,
    ReleaseAsk,
    SettleAsk,
)

DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be stored: the branch and the Hold after it, and the entries; with the answer."""

    answer: Moved
    budgets: tuple[Budget, ...] = ()
    entries: tuple[Entry, ...] = ()


def refusing(branch: Sequence[Budget], asked: Amounts, now: datetime) -> Refusal | None:
    """The first level, from the top, that has no room; None where every level has."""
    for budget in branch:
        if budget.deadline_at is not None and now >= budget.deadline_at:
            return Refusal(budget, DEADLINE, asked)
        for dimension in COUNTED:
            limit = budget.hard.of(dimension)
            if limit and budget.used.of(dimension) + asked.of(dimension) > limit:
                return Refusal(budget, dimension, asked)
    return None


def soft_reached(budget: Budget) -> bool:
    """True at or beyond the soft limit of any dimension."""
    return any(0 < budget.soft.of(name) <= budget.used.of(name) for name in COUNTED)


def at_soft(branch: Sequence[Budget]) -> tuple[str, ...]:
    """The budgets of a branch that are at their soft limit, from the top."""
    return tuple(budget.id for budget in branch if soft_reached(budget))


def take(branch: Sequence[Budget], ask: HoldAsk, now: datetime) -> Step | Refused:
    """A first Hold of that id. `branch` runs from the root down to the budget asked for.

    Fault `not_found` for an empty branch, `validation_failed` where no rate leads to its currency.
    """
    amounts = worth(branch, ask.budget_id, ask.asked)
    refusal = refusing(branch, amounts, now)
    if refusal is not None:
        return Refused(refusal, at_soft(branch))
    hold = Hold(
        ask.hold_id, ask.budget_id, branch[-1].currency, ask.asked.words, amounts, HoldState.HELD, ask.subject, now
    )
    return _moved(branch, hold, EntryKind.HOLD, amounts, NOTHING, ask.subject, now)


def taken_again(known: Hold, branch: Sequence[Budget], ask: HoldAsk) -> Moved:
    """The answer to a repeat: the Hold as it stands, held or settled.

    Fault `conflict` where it was released, `already_exists` where the id was used for another request.
    """
    if known.state is HoldState.RELEASED:
        raise Fault.of("conflict", f"hold '{known.id}' was released; take another id for another reservation")
    if (known.budget_id, known.asked, known.subject) != (ask.budget_id, ask.asked, ask.subject):
        raise Fault.of("already_exists", f"hold '{known.id}' was taken for another request")
    return _repeated(known, branch, "hold")


def enlarge(branch: Sequence[Budget], known: Hold, ask: EnlargeAsk, now: datetime) -> Step | Refused:
    """A Hold that holds at least that much money; one that does is answered as it stands.

    Fault `conflict` where it has ended; `validation_failed` where no rate leads to its currency.
    """
    if known.state is not HoldState.HELD:
        raise has_ended(known)
    lacks = max(0, worth(branch, known.budget_id, ask.asked).cost - known.amounts.cost)
    if not lacks:
        return Step(standing(known, branch))
    more = Amounts(lacks)
    refusal = refusing(branch, more, now)
    if refusal is not None:
        return Refused(refusal, at_soft(branch))
    larger = replace(known, amounts=known.amounts + more)
    return _moved(branch, larger, EntryKind.HOLD, more, NOTHING, ask.reason, now)


def standing(known: Hold, branch: Sequence[Budget]) -> Moved:
    """A Hold that is large enough. Fault `conflict` where it has ended."""
    if known.state is not HoldState.HELD:
        raise has_ended(known)
    return Moved(known, (), at_soft(branch))


def has_ended(known: Hold) -> Fault:
    """Nothing is reserved under that id any more."""
    return Fault.of("conflict", f"hold '{known.id}' is {known.state}; nothing is reserved under it any more")


def settle(branch: Sequence[Budget], known: Hold, ask: SettleAsk, now: datetime) -> Step:
    """Books the real cost and frees the rest; a repeat or, where it says so, a correction of what was booked.

    Fault `conflict` where it has ended in another way; `validation_failed` where no rate leads to the currency.
    """
    if known.state is not HoldState.HELD and not corrects(known, ask):
        return Step(settled_again(known, branch, ask))
    real = worth(branch, known.budget_id, ask.asked)
    if known.state is HoldState.HELD:
        kind, held, spent = EntryKind.SETTLE, -known.amounts, real
    else:
        kind, held, spent = EntryKind.CORRECTION, NOTHING, real - (known.settled or NOTHING)
    done = replace(
        known,
        state=HoldState.SETTLED,
        settled=real,
        settled_asked=ask.asked.words,
        finished_at=known.finished_at or now,
    )
    return _moved(branch, done, kind, held, spent, ask.reason, now)


def corrects(known: Hold, ask: SettleAsk) -> bool:
    """True where a settlement replaces what an ended Hold had booked."""
    return ask.correct and bool(known.budget_id) and known.settled_asked != ask.asked


def settled_again(known: Hold, branch: Sequence[Budget], ask: SettleAsk) -> Moved:
    """The answer to a repeated settlement. Fault `conflict` unless it is one."""
    if known.state is HoldState.RELEASED:
        raise Fault.of(
            "conflict", f"hold '{known.id}' was released; book a charge that was found later as a correction"
        )
    if known.settled_asked != ask.asked:
        raise Fault.of(
            "conflict", f"hold '{known.id}' was settled with other amounts; send a correction to replace them"
        )
    return _repeated(known, branch, "settle")


def release(branch: Sequence[Budget], known: Hold, ask: ReleaseAsk, now: datetime) -> Step:
    """Gives back what is held; one that has ended stays as it ended."""
    if known.state is not HoldState.HELD:
        return Step(Moved(known))
    done = replace(known, state=HoldState.RELEASED, finished_at=now)
    return _moved(branch, done, EntryKind.RELEASE, -known.amounts, NOTHING, ask.reason, now)


def tombstone(hold_id: str, now: datetime) -> Hold:
    """Stands where a Hold was released that nobody knew: the Hold itself may still be on its way."""
    return Hold(hold_id, "", "", Asked(), NOTHING, HoldState.RELEASED, "", now, finished_at=now)


def worth(branch: Sequence[Budget], budget_id: str, asked: Asked) -> Amounts:
    """What was asked, in the currency of the branch."""
    if not branch:
        raise unknown_budget(budget_id)
    amounts = asked.amounts_in(branch[-1].currency)
    if amounts is None:
        raise no_rate(asked.currency, branch[-1].currency)
    return amounts


def unknown_budget(budget_id: str) -> Fault:
    """No budget has that id."""
    return Fault.of("not_found", f"budget '{budget_id}' does not exist")


def unknown_hold(hold_id: str) -> Fault:
    """Nothing was ever held under that id."""
    return Fault.of("not_found", f"hold '{hold_id}' does not exist")


def no_rate(currency: str, wanted: str) -> Fault:
    """The rate table does not lead from the one currency to the other."""
    reason = f"is in {currency}, and the catalogue's `fx` has no rate from {currency} to {wanted}"
    return Fault.invalid(("/amounts/cost", reason))


def sentence(refusal: Refusal) -> str:
    """One sentence with the figures."""
    budget, name = refusal.budget, refusal.dimension
    who = f"{budget.level} budget '{budget.id}'"
    if name == DEADLINE:
        assert budget.deadline_at is not None, "only a deadline refuses by it"
        return f"{who} takes no Hold after its deadline, {budget.deadline_at.isoformat(timespec='seconds')}"
    figures = (amounts.of(name) for amounts in (budget.hard, budget.spent, budget.held, refusal.asked))
    hard, spent, held, asked = (_said(name, figure, budget.currency) for figure in figures)
    return f"{who} is limited to {hard}: {spent} is spent, {held} is held, {asked} more is asked"


def _said(dimension: str, figure: int, currency: str) -> str:
    if dimension == "cost":
        return f"{Money.from_nanos(currency, figure).to_json()['amount']} {currency}"
    return f"{figure} {dimension.replace('_', ' ')}"


def _moved(
    branch: Sequence[Budget], hold: Hold, kind: EntryKind, held: Amounts, spent: Amounts, reason: str, now: datetime
) -> Step:
    """The same movement at every level."""
    by = f"{'hold' if kind is EntryKind.HOLD else 'settle'}:{hold.id}"
    budgets, told = [], []
    for before in branch:
        budget = replace(before, held=before.held + held, spent=before.spent + spent, revision=before.revision + 1)
        if budget.soft_limit_at is None and soft_reached(budget):
            budget = replace(budget, soft_limit_at=now, soft_limit_by=by)
            told.append(budget.id)
        budgets.append(budget)
    entries = tuple(Entry(budget.id, budget.revision, kind, hold.id, held, spent, reason, now) for budget in budgets)
    return Step(Moved(hold, tuple(told), at_soft(budgets)), tuple(budgets), entries)


def _repeated(known: Hold, branch: Sequence[Budget], verb: str) -> Moved:
    told = tuple(budget.id for budget in branch if budget.soft_limit_by == f"{verb}:{known.id}")
    return Moved(known, told, at_soft(branch))
