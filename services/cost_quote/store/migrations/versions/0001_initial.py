"""Price books by catalogue revision."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "price_books",
        sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("fx", JSONB, nullable=False),
        sa.Column("specs", JSONB, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
    )
