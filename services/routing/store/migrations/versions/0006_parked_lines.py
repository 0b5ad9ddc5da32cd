"""The heads of the lines of parked Tasks, by line: one that is blocked is not in the way of another line."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the index that leads from line to line."""
    op.create_index(
        "tasks_parked_lines",
        "tasks",
        ["model", "tenant", "urgency", "tag", "id"],
        postgresql_where=sa.text("parked_at IS NOT NULL"),
    )
