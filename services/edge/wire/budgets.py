"""Budgets and the movements of their ledger."""

from collections.abc import Mapping
from decimal import Decimal

from google.protobuf.field_mask_pb2 import FieldMask

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.values import money_to_proto, time_to_proto
from pointsman.cost_quote.v1 import budget_pb2 as pb
from services.edge.domain import budget_shapes, shapes
from services.edge.domain.budgets import BudgetOrder, LimitChange
from services.edge.wire.values import amount, moment, word

DIMENSIONS = ("attempts", "review_minutes")
PUBLIC_NAMES = {"/parent_id": "/parent", "/deadline_time": "/deadline_at"}


def budget(message: pb.Budget) -> budget_shapes.Budget:
    """One level of a tree."""
    return budget_shapes.Budget(
        id=message.id,
        parent=message.parent_id or None,
        level=message.level,
        tenant=message.tenant or None,
        value_class=word(pb.ValueClass, message.value_class, "VALUE_CLASS_"),
        currency=message.currency,
        hard=limits(message.hard),
        soft=limits(message.soft),
        spent=amounts(message.spent),
        held=amounts(message.held),
        deadline_at=moment(message.deadline_time),
        soft_limit_at=moment(message.soft_limit_time),
        refused_at=moment(message.refuse_time),
        created_at=moment(message.create_time),
        revision=message.revision,
    )


def entry(message: pb.Entry) -> budget_shapes.BudgetEntry:
    """One movement."""
    return budget_shapes.BudgetEntry(
        sequence=message.sequence,
        kind=word(pb.EntryKind, message.kind, "ENTRY_KIND_"),
        hold=message.hold_id or None,
        held=amounts(message.held),
        spent=amounts(message.spent),
        reason=message.reason,
        hard=limits(message.hard) if message.HasField("hard") else None,
        soft=limits(message.soft) if message.HasField("soft") else None,
        deadline_at=moment(message.deadline_time),
        created_at=moment(message.create_time),
    )


def amounts(message: pb.Amounts) -> budget_shapes.BudgetAmounts:
    """What is spent, held or moved."""
    cost = amount(message.cost) or shapes.Amount(message.cost.currency_code, "0.00")
    return budget_shapes.BudgetAmounts(cost, message.attempts, message.review_minutes)


def limits(message: pb.Amounts) -> budget_shapes.BudgetLimits:
    """Null where nothing limits."""
    return budget_shapes.BudgetLimits(amount(message.cost), message.attempts or None, message.review_minutes or None)


def declaration(order: BudgetOrder) -> pb.Budget:
    """A budget to be made."""
    return pb.Budget(
        id=order.id,
        parent_id=order.parent,
        level=order.level,
        tenant=order.tenant,
        value_class=pb.ValueClass.Value(f"VALUE_CLASS_{order.value_class.upper()}"),
        currency=order.currency,
        hard=limit(order.hard, order.currency),
        soft=limit(order.soft, order.currency),
        deadline_time=time_to_proto(order.deadline_at),
    )


def in_public_words(fault: Fault) -> Fault:
    """A refusal of a declaration by the places of the body that it came from."""
    if fault.code != "validation_failed":
        return fault
    places = [(error.pointer.removeprefix("/budget"), error.reason) for error in fault.errors]
    return Fault.invalid(*((PUBLIC_NAMES.get(pointer, pointer), reason) for pointer, reason in places))


def limit(said: Mapping[str, Decimal | int], currency: str) -> pb.Amounts:
    """What was said of a limit; an empty currency is the budget's own."""
    cost = Money.unchecked(currency, Decimal(said["cost"])) if "cost" in said else None
    counts = {name: int(said[name]) for name in DIMENSIONS if name in said}
    return pb.Amounts(cost=money_to_proto(cost), **counts)


def mask(change: LimitChange) -> FieldMask:
    """What changes: another operator may be changing the rest at this moment."""
    return FieldMask(paths=[*(f"hard.{name}" for name in change.hard), *(f"soft.{name}" for name in change.soft)])
