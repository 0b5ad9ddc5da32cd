"""What regression sets have shown of Supplies."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "verifications",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("supply", sa.Text(collation="C"), nullable=False),
        sa.Column("record", JSONB, nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
    )
    op.create_index("verifications_of_supply", "verifications", ["supply", "finished_at"])
