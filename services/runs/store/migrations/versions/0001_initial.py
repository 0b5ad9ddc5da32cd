"""Runs, the keys that name them, and their events."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("labels", JSONB, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("last_sequence", sa.BigInteger, nullable=False),
        sa.Column("document", JSONB, nullable=False),
    )
    op.create_index("runs_of_tenant", "runs", ["tenant", "id"])
    live = sa.text("state IN ('pending', 'running')")
    op.create_index("runs_live", "runs", ["state", "id"], postgresql_where=live)
    op.create_table(
        "run_keys",
        sa.Column("tenant", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", deferrable=True, initially="DEFERRED"), nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
    )
    op.create_table(
        "run_events",
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("sequence", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("data", JSONB, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
