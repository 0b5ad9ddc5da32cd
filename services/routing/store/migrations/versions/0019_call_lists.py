"""Lists of calls that have ended: of a tenant, of everybody, of a conversation. What writers of the release before add
belongs to none.

The ends of calls wait while the indexes are made, as long as the calls that are kept take to be read once; callers do
not, and an end that was not kept in time is found again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the column and the indexes; ranges of time go by the new one."""
    op.add_column("calls", sa.Column("session", sa.Text, nullable=False, server_default=""))
    op.create_index("calls_by_end", "calls", ["finished_at", "id"])
    op.create_index("calls_by_tenant", "calls", ["tenant", "finished_at", "id"])
    in_one = sa.text("session <> ''")
    op.create_index("calls_by_session", "calls", ["tenant", "session", "finished_at", "id"], postgresql_where=in_one)
    op.drop_index("calls_by_time", "calls")
