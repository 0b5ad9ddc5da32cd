"""What each replica has let in, by tenant and minute. Unlogged: a count is worth a minute and no disk."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "request_counts",
        sa.Column("minute", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("tenant", sa.Text, primary_key=True),
        sa.Column("replica", sa.Text, primary_key=True),
        sa.Column("requests", sa.BigInteger, nullable=False),
        prefixes=["UNLOGGED"],
    )
