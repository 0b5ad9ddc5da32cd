"""Calls name the Hold that pays for them, so that one which many share can be settled from their records.

Writers of the release before name none; theirs are named after their calls.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Add the columns. No index: they are looked for by ranges of time, and only after a process died."""
    for table in ("call_attempts", "calls"):
        op.add_column(table, sa.Column("hold", sa.Text, nullable=False, server_default=""))
