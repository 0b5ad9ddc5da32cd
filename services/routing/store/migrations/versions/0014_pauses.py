"""Tasks that are held from new Attempts; those that writers of the release before add are not."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the column."""
    op.add_column("tasks", sa.Column("paused", sa.Boolean, nullable=False, server_default=sa.text("false")))
