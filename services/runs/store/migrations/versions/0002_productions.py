"""Productions: their documents, and what stands on people's desks."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
    op.add_column("runs", sa.Column("production", JSONB))
    op.drop_index("runs_live", "runs")
    live = "state IN ('pending', 'running', 'paused')"
    op.create_index("runs_live", "runs", ["state", "id"], postgresql_where=sa.text(live))
    op.create_index("productions_live", "runs", ["id"], postgresql_where=sa.text(f"production IS NOT NULL AND {live}"))
    op.create_table(
        "reviews",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("root_cause", sa.Text, nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("document", JSONB, nullable=False),
    )
    waiting = sa.text("state IN ('open', 'claimed')")
    op.create_index("reviews_waiting", "reviews", ["tenant", "rank", "opened_at"], postgresql_where=waiting)
    op.create_index("reviews_of_run", "reviews", ["run_id"])
    op.create_table(
        "dead_letters",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("redriven_at", sa.DateTime(timezone=True)),
        sa.Column("redrive_reason", sa.Text, nullable=False),
        sa.Column("document", JSONB, nullable=False),
    )
    op.create_index("dead_letters_of_run", "dead_letters", ["run_id"])
    op.create_index("dead_letters_by_time", "dead_letters", ["created_at", "id"])
