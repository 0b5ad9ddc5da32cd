"""What an operator says of a budget."""

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from services.edge.domain import queries
from services.edge.domain.json_values import Reader

VALUE_CLASSES = ("hero", "normal", "background")
OWN_IDS = ("tenant:", "run:")
"""How the ledger's own budgets begin: those of tenants' periods and of productions."""
CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
MONEY = re.compile(r"\d{1,12}(\.\d{1,9})?", re.ASCII)
LARGEST_COUNT = 10**9
Limit = dict[str, Decimal | int]
"""By dimension; 0 = not limited, absent = nothing was said."""


@dataclass(frozen=True, slots=True)
class BudgetOrder:
    """A budget to be made."""

    id: str
    parent: str
    level: str
    tenant: str
    value_class: str
    currency: str
    hard: Limit
    soft: Limit
    deadline_at: datetime | None


@dataclass(frozen=True, slots=True)
class LimitChange:
    """Limits to be changed; what is not said stays."""

    reason: str
    hard: Limit
    soft: Limit
    deadline_at: datetime | None


def order_of(body: Reader) -> BudgetOrder:
    """Reads the body; its errors are told when it is finished, with what the ledger knows."""
    order = BudgetOrder(
        id=body.text("id", required=True, longest=200),
        parent=body.text("parent", longest=200),
        level=body.text("level", required=True, longest=200),
        tenant=body.text("tenant", longest=200),
        value_class=body.choice("value_class", VALUE_CLASSES) or "normal",
        currency=body.text("currency"),
        hard=_limit(body, "hard"),
        soft=_limit(body, "soft"),
        deadline_at=_moment(body, "deadline_at"),
    )
    if order.id.startswith(OWN_IDS):
        body.refuse("id", f"must not begin with {' or '.join(OWN_IDS)}: such budgets are made with what they pay for")
    if order.currency and not CURRENCY.fullmatch(order.currency):
        body.refuse("currency", "must be three capital letters, such as CNY")
    if not order.parent and not body.has("currency"):
        body.refuse("currency", "is required without a parent: three capital letters, such as CNY")
    _refuse_inverted(body, order)
    return order


def refuse_unknown_parent(body: Reader, parent: str) -> None:
    """There is none of that id."""
    body.refuse("parent", f"names no budget: {parent!r}; make parents before their children")


def change_of(body: Reader) -> LimitChange:
    """Reads and finishes the body. Fault validation_failed."""
    change = LimitChange(
        reason=body.text("reason", required=True),
        hard=_limit(body, "hard"),
        soft=_limit(body, "soft"),
        deadline_at=_moment(body, "deadline_at"),
    )
    if not (change.hard or change.soft or change.deadline_at or body.errors):
        body.refuse("", "changes nothing; name `hard`, `soft` or `deadline_at`")
    body.finish()
    return change


def _limit(body: Reader, name: str) -> Limit:
    limit: Limit = {}
    if not body.has(name):
        return limit
    part = body.nested(name)
    if part.has("cost"):
        text = part.text("cost")
        if text and MONEY.fullmatch(text):
            limit["cost"] = Decimal(text)
        elif text:
            part.refuse("cost", 'must be an amount such as "200.00"; "0" = not limited')
    for count in ("attempts", "review_minutes"):
        if part.has(count):
            value: Any = part.whole(count, 0, LARGEST_COUNT)
            if value is not None:
                limit[count] = value
    part.close()
    return limit


def _refuse_inverted(body: Reader, order: BudgetOrder) -> None:
    soft = body.nested("soft") if order.soft else None
    for name, amount in order.soft.items():
        if soft is not None and 0 < order.hard.get(name, 0) < amount:
            soft.refuse(name, "must not be above the hard limit")


def _moment(body: Reader, name: str) -> datetime | None:
    text = body.text(name)
    value = queries.instant(text) if text else None
    if text and value is None:
        body.refuse(name, "must be a time in RFC 3339, for example 2027-01-31T12:00:00Z")
    return value
