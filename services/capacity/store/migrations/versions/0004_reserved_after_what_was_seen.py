"""A lone reservation is timed after the releases that made room for it.

The function of the same name and arguments is replaced: processes of the previous release call the new one.
"""

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"

SQL = Path(__file__).parent.parent / "sql"


def upgrade() -> None:
    """Replace the function."""
    op.execute((SQL / "reserve_one.sql").read_text(encoding="utf-8"))
