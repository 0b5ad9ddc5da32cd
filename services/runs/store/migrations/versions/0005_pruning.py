"""From which event on the history of a Run is kept."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column, and find what may be pruned."""
    op.add_column("runs", sa.Column("earliest", sa.BigInteger, nullable=False, server_default="1"))
    ended = "state IN ('succeeded', 'failed', 'timed_out', 'cancelled') AND earliest < last_sequence"
    op.create_index("runs_prunable", "runs", ["id"], postgresql_where=sa.text(ended))
