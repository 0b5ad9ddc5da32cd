"""A function that stores outcomes which only count, in one statement."""

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"

SQL = Path(__file__).parent.parent / "sql"


def upgrade() -> None:
    """Add the function."""
    op.execute((SQL / "0002_settle_outcomes.sql").read_text(encoding="utf-8"))
