"""Holds of branches that nothing limits are moved together."""

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"

SQL = Path(__file__).parent.parent / "sql"


def upgrade() -> None:
    """Make one function and replace the other; it answers what was asked before as before."""
    for name in ("0006_move_unlimited", "0006_move_group"):
        op.execute((SQL / f"{name}.sql").read_text(encoding="utf-8"))
