"""Rows of the ledger's tables, by column or as JSON, into values of the domain and back."""

from datetime import UTC, datetime
from typing import Any

from libs.kernel.canonical import plain
from services.cost_quote.domain.budgets import (
    Amounts,
    Asked,
    Budget,
    Entry,
    EntryKind,
    Hold,
    HoldState,
    Limits,
    ValueClass,
)

Row = Any
"""A row by column, or the JSON object of one."""
AMOUNTS = ("cost", "attempts", "review_minutes")


def budget_of(row: Row) -> Budget:
    """One level of a tree."""
    return Budget(
        id=row["id"],
        parent_id=row["parent_id"],
        path=tuple(row["path"]),
        level=row["level"],
        tenant=row["tenant"],
        value_class=ValueClass(row["value_class"]),
        currency=row["currency"],
        declaration=row["declaration"],
        hard=amounts_of(row, "hard_"),
        soft=amounts_of(row, "soft_"),
        spent=amounts_of(row, "spent_"),
        held=amounts_of(row, "held_"),
        deadline_at=_moment(row["deadline_at"]),
        soft_limit_at=_moment(row["soft_limit_at"]),
        soft_limit_by=row["soft_limit_by"],
        refused_at=_moment(row["refused_at"]),
        created_at=_time(row["created_at"]),
        revision=row["revision"],
        number=row["number"],
    )


def columns_of(budget: Budget) -> dict[str, object]:
    """A new budget's columns; its number is the table's to give."""
    named = ("id", "parent_id", "level", "tenant", "currency", "declaration", "deadline_at", "created_at")
    return {
        **{name: getattr(budget, name) for name in named},
        "path": list(budget.path),
        "value_class": budget.value_class.value,
        **columns_of_amounts("hard_", budget.hard),
        **columns_of_amounts("soft_", budget.soft),
    }


def hold_of(row: Row) -> Hold:
    """A Hold as it stands."""
    amounts = amounts_of(row, "")
    settled = settled_asked = None
    if row["settled_cost"] is not None:
        settled = amounts_of(row, "settled_")
        settled_asked = _asked(row["settled_asked_cost"], row["settled_asked_currency"], settled)
    return Hold(
        id=row["id"],
        budget_id=row["budget_id"],
        currency=row["currency"],
        asked=_asked(row["asked_cost"], row["asked_currency"], amounts),
        amounts=amounts,
        state=HoldState(row["state"]),
        subject=row["subject"],
        created_at=_time(row["created_at"]),
        settled=settled,
        settled_asked=settled_asked,
        finished_at=_moment(row["finished_at"]),
    )


def entry_of(row: Row) -> Entry:
    """One movement."""
    return Entry(
        budget_id=row["budget_id"],
        sequence=row["sequence"],
        kind=EntryKind(row["kind"]),
        hold_id=row["hold_id"],
        held=amounts_of(row, "held_"),
        spent=amounts_of(row, "spent_"),
        reason=row["reason"],
        created_at=_time(row["created_at"]),
        request_id=row["request_id"],
        limits=_limits(row["limits"]),
    )


def columns_of_entry(entry: Entry) -> dict[str, object]:
    """A change of limits as a row; other movements are written by `move_branch`."""
    return {
        "budget_id": entry.budget_id,
        "sequence": entry.sequence,
        "kind": entry.kind.value,
        "hold_id": entry.hold_id,
        **columns_of_amounts("held_", entry.held),
        **columns_of_amounts("spent_", entry.spent),
        "reason": entry.reason,
        "request_id": entry.request_id,
        "limits": plain(entry.limits),
        "created_at": entry.created_at,
    }


def amounts_of(row: Row, prefix: str) -> Amounts:
    """Three columns."""
    return Amounts(*(int(row[prefix + name]) for name in AMOUNTS))


def columns_of_amounts(prefix: str, amounts: Amounts) -> dict[str, object]:
    """The same, the other way."""
    return {prefix + name: amounts.of(name) for name in AMOUNTS}


def _asked(cost: Any, currency: str, amounts: Amounts) -> Asked:
    return Asked(int(cost), currency, amounts.attempts, amounts.review_minutes)


def _limits(value: Row | None) -> Limits | None:
    if value is None:
        return None
    return Limits(Amounts(**value["hard"]), Amounts(**value["soft"]), _moment(value["deadline_at"]))


def _moment(value: datetime | str | None) -> datetime | None:
    return None if value is None else _time(value)


def _time(value: datetime | str) -> datetime:
    return (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)
