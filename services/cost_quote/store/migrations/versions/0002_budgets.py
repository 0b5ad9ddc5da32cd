"""Budgets, Holds and entries; the function that moves them, and the view that holds them to account."""

from pathlib import Path

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"

SQL = Path(__file__).parent.parent / "sql"
MOMENT = sa.DateTime(timezone=True)

# Time is a function so that a test may set another in its place.
SERVER_TIME = """
CREATE FUNCTION server_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()'
"""

# Nobody, not even the service itself, changes what was written.
APPEND_ONLY = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
  RAISE EXCEPTION 'entries of a ledger are never changed; write a correction';
END
$function$
"""
GUARD = """
CREATE TRIGGER entry_is_final BEFORE UPDATE OR DELETE ON entry FOR EACH ROW EXECUTE FUNCTION refuse_change()
"""


def _amounts(prefix: str, nullable: bool = False, zero: bool = False) -> list[sa.Column[object]]:
    default = sa.text("0") if zero else None
    return [
        sa.Column(f"{prefix}cost", sa.Numeric(38, 0), nullable=nullable, server_default=default),
        sa.Column(f"{prefix}attempts", sa.BigInteger, nullable=nullable, server_default=default),
        sa.Column(f"{prefix}review_minutes", sa.BigInteger, nullable=nullable, server_default=default),
    ]


def upgrade() -> None:
    """Make tables, functions, the trigger and the view."""
    _budget()
    _hold()
    _entry()
    op.execute(SERVER_TIME)
    op.execute(APPEND_ONLY)
    op.execute(GUARD)
    for name in ("0002_move_branch", "0002_move_group", "0002_ledger_mismatch"):
        op.execute((SQL / f"{name}.sql").read_text(encoding="utf-8"))


def _budget() -> None:
    op.create_table(
        "budget",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, sa.Identity(always=True), nullable=False),
        sa.Column("parent_id", sa.Text, nullable=False),
        sa.Column("path", sa.ARRAY(sa.Text), nullable=False),
        sa.Column("level", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("value_class", sa.Text, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("declaration", sa.Text, nullable=False),
        *_amounts("hard_"),
        *_amounts("soft_"),
        *_amounts("spent_", zero=True),
        *_amounts("held_", zero=True),
        sa.Column("deadline_at", MOMENT),
        sa.Column("soft_limit_at", MOMENT),
        sa.Column("soft_limit_by", sa.Text, nullable=False, server_default=""),
        sa.Column("refused_at", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        postgresql_with={"fillfactor": "50"},
    )
    op.create_index("budget_number", "budget", ["number"], unique=True)
    op.create_index("budget_path", "budget", ["path"], postgresql_using="gin")


def _hold() -> None:
    op.create_table(
        "hold",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("budget_id", sa.Text, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("asked_cost", sa.Numeric(38, 0), nullable=False),
        sa.Column("asked_currency", sa.Text, nullable=False),
        *_amounts(""),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("settled_asked_cost", sa.Numeric(38, 0)),
        sa.Column("settled_asked_currency", sa.Text),
        *_amounts("settled_", nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT),
    )


def _entry() -> None:
    op.create_table(
        "entry",
        sa.Column("budget_id", sa.Text, primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("hold_id", sa.Text, nullable=False),
        *_amounts("held_"),
        *_amounts("spent_"),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("limits", JSONB),
        sa.Column("created_at", MOMENT, nullable=False),
    )
    op.create_index(
        "entry_request", "entry", ["budget_id", "request_id"], unique=True, postgresql_where=sa.text("request_id <> ''")
    )
