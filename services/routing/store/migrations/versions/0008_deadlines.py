"""Deadlines of Tasks that were never claimed: the scan finds one that has passed, however far its turn is."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

UNCLAIMED = sa.text("state = 'queued' AND timer_at IS NULL AND deadline IS NOT NULL")


def upgrade() -> None:
    """Add the column, fill it where somebody may still look for it, and make its index."""
    op.add_column("tasks", sa.Column("deadline", sa.DateTime(timezone=True)))
    op.execute("UPDATE tasks SET deadline = CAST(request->>'deadline' AS timestamptz) WHERE state = 'queued'")
    op.create_index("tasks_late", "tasks", ["deadline", "id"], postgresql_where=UNCLAIMED)
