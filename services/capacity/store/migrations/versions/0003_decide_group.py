"""Functions that decide a group as a set where it plainly fits, and a lone reservation in one look.

The functions of the previous release stay beside it: its processes go on calling them until they are gone.
"""

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"

SQL = Path(__file__).parent.parent / "sql"


def upgrade() -> None:
    """Add the functions, and drop an index that it does not need and every reservation paid for."""
    op.drop_index("lease_live_kind", "lease")
    op.execute((SQL / "0003_decide_group.sql").read_text(encoding="utf-8"))
    op.execute((SQL / "reserve_one.sql").read_text(encoding="utf-8"))
