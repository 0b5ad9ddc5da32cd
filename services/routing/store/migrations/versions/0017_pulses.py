"""A time that no clock can fake: what the silence of a provider's records is measured by."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add columns. Counting begins at nought: what is uncertain already has been silent for no time."""
    op.add_column("life", sa.Column("pulse", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("restores", sa.Column("pulse", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("attempts", sa.Column("silent_since", sa.BigInteger))
