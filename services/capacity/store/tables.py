"""The tables as they are now."""

from sqlalchemy import BigInteger, Boolean, Column, DateTime, Index, Integer, MetaData, SmallInteger, Table, Text, text

metadata = MetaData()

level = Table(
    "level",
    metadata,
    Column("kind", SmallInteger, primary_key=True, autoincrement=False),
    Column("id", Text, primary_key=True),
    Column("channel_id", Text, nullable=False),
    Column("concurrency", Integer, nullable=False),
    Column("requests_per_minute", Integer, nullable=False),
    Column("tokens_per_minute", BigInteger, nullable=False),
    Column("retired", Boolean, nullable=False),
    Column("health_epoch", BigInteger),
    Column("health_revision", BigInteger),
    Column("health_limit", Integer),
)

lease = Table(
    "lease",
    metadata,
    Column("id", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("channel_id", Text, nullable=False),
    Column("supply_id", Text, nullable=False),
    Column("channel_epoch", BigInteger, nullable=False),
    Column("supply_epoch", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("reserved_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True)),
    Column("released", Boolean, nullable=False),
    Index("lease_live_channel", "channel_id", postgresql_where=text("ended_at IS NULL")),
    Index("lease_live_kind", "kind", postgresql_where=text("ended_at IS NULL")),
    Index("lease_lapses", "expires_at", postgresql_where=text("ended_at IS NULL")),
    Index("lease_window", "channel_id", "reserved_at"),
    Index("lease_reserved", "reserved_at"),
)

catalog = Table(
    "catalog",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, nullable=False),
)
