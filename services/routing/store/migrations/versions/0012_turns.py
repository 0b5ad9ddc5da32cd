"""Who is due first within a line of parked Tasks; writers of the release before count as due when they write."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the column, fill it where somebody waits, and lead the index of the lines by it."""
    now = sa.text("now()")
    op.add_column("tasks", sa.Column("turn_at", sa.DateTime(timezone=True), nullable=False, server_default=now))
    op.execute("UPDATE tasks SET turn_at = created_at + interval '1200 s' WHERE state = 'queued'")
    op.drop_index("tasks_parked_lines", "tasks")
    op.create_index(
        "tasks_parked_turns",
        "tasks",
        ["model", "tenant", "urgency", "turn_at", "id"],
        postgresql_where=sa.text("parked_at IS NOT NULL"),
    )
