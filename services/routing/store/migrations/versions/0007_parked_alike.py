"""Parked Tasks by what they wait for, so that the first of each kind is found at once."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

PARKED = sa.text("parked_at IS NOT NULL")


def upgrade() -> None:
    """The old index goes: the release before this one scans the new one instead, more slowly."""
    op.create_index("tasks_parked_alike", "tasks", ["model", "round_key", "tag", "id"], postgresql_where=PARKED)
    op.drop_index("tasks_parked", "tasks")
