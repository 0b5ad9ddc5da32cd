"""The trace that handed a Task over; what writers of the release before add belongs to none."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Add the column."""
    op.add_column("tasks", sa.Column("traceparent", sa.Text, nullable=False, server_default=""))
