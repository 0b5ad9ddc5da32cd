"""Messages of `BudgetService` to domain values and back."""

from collections.abc import Collection, Iterable

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.values import money_from_proto, money_to_proto, stamp_of, time_from_proto, time_to_proto
from pointsman.cost_quote.v1 import budget_pb2 as pb
from pointsman.cost_quote.v1 import budget_service_pb2 as service_pb
from services.cost_quote.domain.budgets import (
    COUNTED,
    NOTHING,
    Amounts,
    Asked,
    Budget,
    ChangeAsk,
    Declaration,
    EnlargeAsk,
    Entry,
    EntryKind,
    Hold,
    HoldAsk,
    HoldState,
    Moved,
    Refusal,
    Refused,
    SettleAsk,
    ValueClass,
)
from services.cost_quote.domain.ledger import sentence

MOST = 10**12
"""What no amount reaches, in units, attempts or minutes: sums of any number of them stay exact."""
_CLASSES = {pb.ValueClass.Value(f"VALUE_CLASS_{item.name}"): item for item in ValueClass}
_CLASS_NUMBERS = {item: number for number, item in _CLASSES.items()}
_STATES = {item: pb.HoldState.Value(f"HOLD_STATE_{item.name}") for item in HoldState}
_KINDS = {item: pb.EntryKind.Value(f"ENTRY_KIND_{item.name}") for item in EntryKind}


def declaration_from_proto(message: pb.Budget) -> Declaration:
    """A budget to be made; what only the ledger knows is not read."""
    hard, hard_currency = _limit(message.hard, "/budget/hard")
    soft, soft_currency = _limit(message.soft, "/budget/soft")
    return Declaration(
        id=message.id,
        level=message.level,
        parent_id=message.parent_id,
        tenant=message.tenant,
        value_class=_CLASSES.get(message.value_class, ValueClass.NORMAL),
        currency=message.currency,
        hard=hard,
        soft=soft,
        hard_currency=hard_currency,
        soft_currency=soft_currency,
        deadline_at=time_from_proto(message.deadline_time, "/budget/deadline_time"),
    )


def change_from_proto(message: service_pb.ChangeLimitsRequest) -> ChangeAsk:
    """New limits: the dimensions of the mask, or all of a limit that is there. Fault `validation_failed` names what a
    mask cannot name."""
    hard, hard_currency = _limit(message.hard, "/hard")
    soft, soft_currency = _limit(message.soft, "/soft")
    masked, paths = message.HasField("update_mask"), message.update_mask.paths
    _refuse_unknown(paths)
    hard_named = _named("hard", paths) if masked else COUNTED if message.HasField("hard") else ()
    soft_named = _named("soft", paths) if masked else COUNTED if message.HasField("soft") else ()
    return ChangeAsk(
        budget_id=message.budget_id,
        reason=message.reason,
        hard=hard if hard_named else None,
        soft=soft if soft_named else None,
        hard_currency=hard_currency,
        soft_currency=soft_currency,
        deadline_at=time_from_proto(message.deadline_time, "/deadline_time"),
        request_id=message.request_id,
        hard_named=hard_named,
        soft_named=soft_named,
        only_raise=message.only_raise,
    )


def _named(limit: str, paths: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in COUNTED if f"{limit}.{name}" in paths)


def _refuse_unknown(paths: Iterable[str]) -> None:
    known = [f"{limit}.{name}" for limit in ("hard", "soft") for name in COUNTED]
    unknown = [path for path in paths if path not in known]
    if unknown:
        raise Fault.invalid(("/update_mask", f"names {unknown[0]!r}; name one of {', '.join(known)}"))


def hold_from_proto(message: service_pb.HoldRequest) -> HoldAsk:
    """A reservation asked for."""
    return HoldAsk(message.hold_id, message.budget_id, asked_from_proto(message.amounts), message.subject)


def enlargement_from_proto(message: service_pb.EnlargeHoldRequest) -> EnlargeAsk:
    """What a Hold is to hold at least."""
    asked = asked_from_proto(message.amounts)
    return EnlargeAsk(message.hold_id, Asked(asked.cost, asked.currency), message.reason)


def settlement_from_proto(message: service_pb.SettleRequest) -> SettleAsk:
    """What it cost."""
    return SettleAsk(message.hold_id, asked_from_proto(message.amounts), message.reason, message.correct)


def asked_from_proto(message: pb.Amounts) -> Asked:
    """Amounts to be moved. Fault `validation_failed` for what cannot be."""
    money = money_from_proto(message.cost)
    if money is None and (message.cost.units or message.cost.nanos):
        raise Fault.invalid(("/amounts/cost", "names no currency; write its three capital letters"))
    cost = 0 if money is None else money.to_nanos()
    asked = Asked(cost, money.currency if money else "", message.attempts, message.review_minutes)
    wrong = [name for name in COUNTED if not 0 <= getattr(asked, name) < _most(name)]
    if wrong:
        raise Fault.invalid(*((f"/amounts/{name}", f"must be from 0 to below {MOST:.0e}") for name in wrong))
    return asked


def budget_to_proto(budget: Budget) -> pb.Budget:
    """A budget as others see it."""
    return pb.Budget(
        id=budget.id,
        parent_id=budget.parent_id,
        level=budget.level,
        tenant=budget.tenant,
        value_class=_CLASS_NUMBERS[budget.value_class],
        currency=budget.currency,
        hard=limit_to_proto(budget.hard, budget.currency),
        soft=limit_to_proto(budget.soft, budget.currency),
        spent=amounts_to_proto(budget.spent, budget.currency),
        held=amounts_to_proto(budget.held, budget.currency),
        deadline_time=time_to_proto(budget.deadline_at),
        soft_limit_time=time_to_proto(budget.soft_limit_at),
        refuse_time=time_to_proto(budget.refused_at),
        create_time=stamp_of(budget.created_at),
        revision=budget.revision,
    )


def hold_to_proto(hold: Hold) -> pb.Hold:
    """A Hold as others see it."""
    currency = hold.currency
    return pb.Hold(
        id=hold.id,
        budget_id=hold.budget_id,
        amounts=amounts_to_proto(hold.amounts, currency),
        state=_STATES[hold.state],
        settled=amounts_to_proto(hold.settled, currency) if hold.settled is not None else None,
        subject=hold.subject,
        create_time=stamp_of(hold.created_at),
        finish_time=time_to_proto(hold.finished_at),
    )


def held_to_proto(outcome: Moved | Refused) -> service_pb.HoldResponse:
    """Either half of the answer."""
    if isinstance(outcome, Refused):
        return service_pb.HoldResponse(refusal=refusal_to_proto(outcome.refusal), soft_budget_ids=outcome.soft)
    return service_pb.HoldResponse(
        hold=hold_to_proto(outcome.hold), soft_limit_budget_ids=outcome.told, soft_budget_ids=outcome.soft
    )


def enlarged_to_proto(outcome: Moved | Refused) -> service_pb.EnlargeHoldResponse:
    """Either half of the answer."""
    if isinstance(outcome, Refused):
        return service_pb.EnlargeHoldResponse(refusal=refusal_to_proto(outcome.refusal))
    return service_pb.EnlargeHoldResponse(hold=hold_to_proto(outcome.hold), soft_limit_budget_ids=outcome.told)


def settled_to_proto(moved: Moved) -> service_pb.SettleResponse:
    """What was booked, and what of it nobody had reserved."""
    beyond = moved.hold.beyond
    return service_pb.SettleResponse(
        hold=hold_to_proto(moved.hold),
        soft_limit_budget_ids=moved.told,
        beyond=amounts_to_proto(beyond, moved.hold.currency) if beyond != NOTHING else None,
    )


def refusal_to_proto(refusal: Refusal) -> pb.HoldRefusal:
    """Why not, with the figures."""
    budget = refusal.budget
    return pb.HoldRefusal(
        budget_id=budget.id,
        level=budget.level,
        dimension=refusal.dimension,
        message=sentence(refusal),
        value_class=_CLASS_NUMBERS[budget.value_class],
        hard=limit_to_proto(budget.hard, budget.currency),
        spent=amounts_to_proto(budget.spent, budget.currency),
        held=amounts_to_proto(budget.held, budget.currency),
        asked=amounts_to_proto(refusal.asked, budget.currency),
    )


def entry_to_proto(entry: Entry, currency: str) -> pb.Entry:
    """One movement."""
    limits = entry.limits
    return pb.Entry(
        budget_id=entry.budget_id,
        sequence=entry.sequence,
        kind=_KINDS[entry.kind],
        hold_id=entry.hold_id,
        held=amounts_to_proto(entry.held, currency),
        spent=amounts_to_proto(entry.spent, currency),
        reason=entry.reason,
        create_time=stamp_of(entry.created_at),
        hard=limit_to_proto(limits.hard, currency) if limits else None,
        soft=limit_to_proto(limits.soft, currency) if limits else None,
        deadline_time=time_to_proto(limits.deadline_at) if limits else None,
    )


def amounts_to_proto(amounts: Amounts, currency: str) -> pb.Amounts:
    """All dimensions, zeros too."""
    cost = money_to_proto(Money.from_nanos(currency, amounts.cost)) if currency else None
    return pb.Amounts(cost=cost, attempts=amounts.attempts, review_minutes=amounts.review_minutes)


def limit_to_proto(amounts: Amounts, currency: str) -> pb.Amounts:
    """Absent money = not limited."""
    message = amounts_to_proto(amounts, currency)
    if not amounts.cost:
        message.ClearField("cost")
    return message


def _limit(message: pb.Amounts, at: str) -> tuple[Amounts, str]:
    """(a limit, the currency that it names)."""
    money = message.cost
    limit = Amounts(money.units * 10**9 + money.nanos, message.attempts, message.review_minutes)
    wrong = [name for name in COUNTED if limit.of(name) >= _most(name)]
    if wrong:
        raise Fault.invalid(*((f"{at}/{name}", f"must be below {MOST:.0e}; 0 = not limited") for name in wrong))
    return limit, money.currency_code


def _most(name: str) -> int:
    return MOST * 10**9 if name == "cost" else MOST
