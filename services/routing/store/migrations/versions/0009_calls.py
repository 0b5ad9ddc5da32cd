"""Synchronous calls, the intents of their tries, and the answers of the response cache."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables. BRIN: rows come in the order of their times and are only looked for by ranges of it."""
    op.create_table(
        "call_attempts",
        sa.Column("call_id", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("attempt_id", sa.Text, nullable=False),
        sa.Column("supply", sa.Text, nullable=False),
        sa.Column("sent_at", MOMENT, nullable=False),
        sa.Column("overdue_at", MOMENT, nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("decided_at", MOMENT, nullable=False),
        sa.Column("selection", sa.Text, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_table(
        "calls",
        sa.Column("id", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("tenant", "model", "kind", "state", "code", "supply")),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("cost", sa.Numeric, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("rounds", sa.Text, nullable=False),
    )
    op.create_table(
        "call_answers",
        sa.Column("tenant", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("answer", sa.LargeBinary, nullable=False),
        sa.Column("until", MOMENT, nullable=False),
    )
    by_range = {"postgresql_using": "brin", "postgresql_with": {"autosummarize": "on"}}
    op.create_index("call_attempts_by_time", "call_attempts", ["overdue_at"], **by_range)
    op.create_index("calls_by_time", "calls", ["finished_at"], **by_range)
    op.create_index("call_answers_by_time", "call_answers", ["until"])
