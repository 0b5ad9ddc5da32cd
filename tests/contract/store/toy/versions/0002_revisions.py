"""Notes get a revision, and an index for listing."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add a column with a default, so that the previous release can go on writing."""
    op.add_column("notes", sa.Column("revision", sa.Integer, nullable=False, server_default="1"))
    op.execute("CREATE INDEX notes_by_time ON notes (created_at, id)")
