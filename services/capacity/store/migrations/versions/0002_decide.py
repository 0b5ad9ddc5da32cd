"""Pace of a level, running totals of its windows, and the function that decides a group in one statement.

The previous release keeps working on this schema. What it admits is missing from the totals until they are counted
anew, a minute at most.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

SERVER_TIME = "CREATE FUNCTION server_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()'"

DECISION = """
CREATE TYPE decision AS (
  nth integer, outcome text, kind smallint, id text, gate text, bound bigint, used bigint, at timestamptz, held lease
)
"""

SQL = Path(__file__).parent.parent / "sql"


def upgrade() -> None:
    """Add columns and functions."""
    moment = sa.DateTime(timezone=True)
    for column in (
        sa.Column("pace_limit", sa.BigInteger),
        sa.Column("pace_ceiling", sa.Integer, nullable=False, server_default="0"),
        sa.Column("pace_cut_at", moment),
        sa.Column("pace_frozen_until", moment),
        sa.Column("window_from", moment),
        sa.Column("window_requests", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("window_tokens", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("window_counted_at", moment),
    ):
        op.add_column("level", column)
    op.add_column("lease", sa.Column("used_tokens", sa.BigInteger))
    overuse = sa.text("used_tokens > tokens")
    op.create_index("lease_overuse", "lease", ["ended_at"], postgresql_where=overuse)
    op.execute(SERVER_TIME)
    op.execute(DECISION)
    op.execute((SQL / "0002_decide.sql").read_text(encoding="utf-8"))
    op.execute((SQL / "0002_reserve_alone.sql").read_text(encoding="utf-8"))
