"""Levels and leases."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

LIVE = sa.text("ended_at IS NULL")


def upgrade() -> None:
    """Make the tables."""
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "level",
        sa.Column("kind", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("channel_id", sa.Text, nullable=False),
        sa.Column("concurrency", sa.Integer, nullable=False),
        sa.Column("requests_per_minute", sa.Integer, nullable=False),
        sa.Column("tokens_per_minute", sa.BigInteger, nullable=False),
        sa.Column("retired", sa.Boolean, nullable=False),
        sa.Column("health_epoch", sa.BigInteger),
        sa.Column("health_revision", sa.BigInteger),
        sa.Column("health_limit", sa.Integer),
    )
    op.create_table(
        "lease",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("channel_id", sa.Text, nullable=False),
        sa.Column("supply_id", sa.Text, nullable=False),
        sa.Column("channel_epoch", sa.BigInteger, nullable=False),
        sa.Column("supply_epoch", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("reserved_at", moment, nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.Column("ended_at", moment),
        sa.Column("released", sa.Boolean, nullable=False),
    )
    op.create_index("lease_live_channel", "lease", ["channel_id"], postgresql_where=LIVE)
    op.create_index("lease_live_kind", "lease", ["kind"], postgresql_where=LIVE)
    op.create_index("lease_lapses", "lease", ["expires_at"], postgresql_where=LIVE)
    op.create_index("lease_window", "lease", ["channel_id", "reserved_at"])
    op.create_index("lease_reserved", "lease", ["reserved_at"])
    catalog = op.create_table(
        "catalog",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(catalog, [{"id": 1, "revision": 0}])
