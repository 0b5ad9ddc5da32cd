"""Results that equal nodes of other Runs may take."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "memos",
        sa.Column("tenant", sa.Text, primary_key=True),
        sa.Column("input_hash", sa.Text, primary_key=True),
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("document", JSONB, nullable=False),
    )
