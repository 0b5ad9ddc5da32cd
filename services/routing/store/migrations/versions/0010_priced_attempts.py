"""The price rule that quoted an Attempt, so that reported usage is settled by the same version."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the columns; what was quoted before is settled by its quote."""
    op.add_column("attempts", sa.Column("price_rule", sa.Text, nullable=False, server_default=""))
    op.add_column("attempts", sa.Column("price_version", sa.Integer, nullable=False, server_default="0"))
    op.add_column("attempts", sa.Column("quote_kind", sa.Text, nullable=False, server_default=""))
