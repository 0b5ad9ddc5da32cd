"""A Hold may grow by money while it is held."""

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"

SQL = Path(__file__).parent.parent / "sql"


def upgrade() -> None:
    """Replace the function; it answers what was asked before as before."""
    op.execute((SQL / "0004_move_group.sql").read_text(encoding="utf-8"))
