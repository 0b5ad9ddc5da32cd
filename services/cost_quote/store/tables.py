"""The tables as they are now."""

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Identity,
    Index,
    MetaData,
    Numeric,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

metadata = MetaData()

price_books = Table(
    "price_books",
    metadata,
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("currency", Text, nullable=False),
    Column("fx", JSONB, nullable=False),
    Column("specs", JSONB, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)


def _amounts(prefix: str, nullable: bool = False, zero: bool = False) -> list[Column[object]]:
    """Money in nanos, attempts, minutes of reviewers."""
    default = text("0") if zero else None
    return [
        Column(f"{prefix}cost", Numeric(38, 0), nullable=nullable, server_default=default),
        Column(f"{prefix}attempts", BigInteger, nullable=nullable, server_default=default),
        Column(f"{prefix}review_minutes", BigInteger, nullable=nullable, server_default=default),
    ]


budget = Table(
    "budget",
    metadata,
    Column("id", Text, primary_key=True),
    Column("number", BigInteger, Identity(always=True), nullable=False),
    Column("parent_id", Text, nullable=False),
    Column("path", ARRAY(Text), nullable=False),
    Column("level", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("value_class", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("declaration", Text, nullable=False),
    *_amounts("hard_"),
    *_amounts("soft_"),
    *_amounts("spent_", zero=True),
    *_amounts("held_", zero=True),
    Column("deadline_at", DateTime(timezone=True)),
    Column("soft_limit_at", DateTime(timezone=True)),
    Column("soft_limit_by", Text, nullable=False, server_default=""),
    Column("refused_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("revision", BigInteger, nullable=False, server_default=text("0")),
    Index("budget_number", "number", unique=True),
    Index("budget_path", "path", postgresql_using="gin"),
)
"""What changes with every Hold is in no index, so that a row is rewritten in its own page."""

hold = Table(
    "hold",
    metadata,
    Column("id", Text, primary_key=True),
    Column("budget_id", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("asked_cost", Numeric(38, 0), nullable=False),
    Column("asked_currency", Text, nullable=False),
    *_amounts(""),
    Column("state", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("settled_asked_cost", Numeric(38, 0)),
    Column("settled_asked_currency", Text),
    *_amounts("settled_", nullable=True),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("finished_at", DateTime(timezone=True)),
    Index("hold_open", "id", postgresql_where=text("state = 'held'")),
)
"""`budget_id` is empty where a Hold was released that nobody knew. The index of open ones is in the order of bytes."""

entry = Table(
    "entry",
    metadata,
    Column("budget_id", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("hold_id", Text, nullable=False),
    *_amounts("held_"),
    *_amounts("spent_"),
    Column("reason", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("limits", JSONB),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Index("entry_request", "budget_id", "request_id", unique=True, postgresql_where=text("request_id <> ''")),
)
"""Append-only: a trigger refuses every change."""

checkpoint = Table(
    "checkpoint",
    metadata,
    Column("budget_id", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    *_amounts("held_"),
    *_amounts("spent_"),
    *_amounts("beyond_"),
    *_amounts("own_"),
    Column("whole_at", DateTime(timezone=True), nullable=False),
)
"""Up to which entry a budget is proven, and the sums there: `beyond` of what no Hold had reserved, `own` of what Holds
of the budget itself booked, not those of its children. `whole_at`: when it was last proven from its first entry."""
