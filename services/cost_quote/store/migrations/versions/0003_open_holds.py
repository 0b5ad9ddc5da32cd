"""What is held can be found without what was."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the index."""
    op.execute("""CREATE INDEX hold_open ON hold (id COLLATE "C") WHERE state = 'held'""")
