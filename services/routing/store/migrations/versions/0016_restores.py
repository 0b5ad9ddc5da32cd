"""What a database that was put back cannot know: its life, its restores, and Tasks that may have been sent since."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add columns and tables; what stands is in no doubt."""
    op.add_column("tasks", sa.Column("doubted_since", MOMENT))
    op.add_column("tasks", sa.Column("doubted_until", MOMENT))
    op.add_column("attempts", sa.Column("doubted", sa.Boolean, nullable=False, server_default=sa.text("false")))
    op.create_table(
        "life",
        sa.Column("one", sa.Boolean, primary_key=True),
        sa.Column("database", sa.Text, nullable=False),
        sa.Column("beat", sa.BigInteger, nullable=False),
        sa.Column("beaten_at", MOMENT, nullable=False),
    )
    op.create_table(
        "restores",
        sa.Column("backup_at", MOMENT, primary_key=True),
        sa.Column("noticed_at", MOMENT, nullable=False),
        sa.Column("over_at", MOMENT),
    )
