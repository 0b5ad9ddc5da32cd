"""Selection rounds by the time of their decision, for questions about a stretch of history."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the index."""
    op.create_index("selections_by_time", "selections", ["decided_at", "task_id", "round"])
