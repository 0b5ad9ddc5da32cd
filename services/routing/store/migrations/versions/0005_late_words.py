"""What providers say of jobs after we had ended their Attempts, and when they are asked."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the columns and the index of what is due; defaults let the release before this one go on writing."""
    op.add_column("attempts", sa.Column("late_look_at", sa.DateTime(timezone=True)))
    op.add_column("attempts", sa.Column("late_looks", sa.Integer, nullable=False, server_default="0"))
    op.add_column("attempts", sa.Column("late", JSONB))
    due = sa.text("late_look_at IS NOT NULL")
    op.create_index("attempts_to_hear", "attempts", ["late_look_at", "id"], postgresql_where=due)
