"""The secret before the last rotation, and until when it holds."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns; a release that does not know them takes the present secret alone."""
    op.add_column("keys", sa.Column("former_digest", sa.Text))
    op.add_column("keys", sa.Column("former_until", sa.DateTime(timezone=True)))
