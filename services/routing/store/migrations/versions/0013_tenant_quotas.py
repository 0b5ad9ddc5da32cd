"""The open Tasks of a tenant by their Runs, for its quotas."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the index."""
    op.create_index(
        "tasks_open_of_tenant",
        "tasks",
        ["tenant", "state", "run_id", "id"],
        postgresql_where=sa.text("state IN ('queued', 'dispatching', 'running')"),
    )
