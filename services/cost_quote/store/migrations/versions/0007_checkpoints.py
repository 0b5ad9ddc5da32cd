"""How far each budget is proven, and the function that goes on from there."""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

SQL = Path(__file__).parent.parent / "sql"


def _amounts(prefix: str) -> list[sa.Column[object]]:
    return [
        sa.Column(f"{prefix}cost", sa.Numeric(38, 0), nullable=False),
        sa.Column(f"{prefix}attempts", sa.BigInteger, nullable=False),
        sa.Column(f"{prefix}review_minutes", sa.BigInteger, nullable=False),
    ]


def upgrade() -> None:
    """Make the table, without rows: the first look reads everything; and the function."""
    op.create_table(
        "checkpoint",
        sa.Column("budget_id", sa.Text, primary_key=True),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        *_amounts("held_"),
        *_amounts("spent_"),
        *_amounts("beyond_"),
        *_amounts("own_"),
        sa.Column("whole_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.execute((SQL / "0007_prove_ledger.sql").read_text(encoding="utf-8"))
