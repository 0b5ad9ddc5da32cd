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
    # what pacing.told keeps; the limit in thousandths of a slot
    Column("pace_limit", BigInteger),
    Column("pace_ceiling", Integer, nullable=False, server_default="0"),
    Column("pace_cut_at", DateTime(timezone=True)),
    Column("pace_frozen_until", DateTime(timezone=True)),
    # what the leases weigh in the windows that began at `window_from`: sums of rows, counted anew each minute
    Column("window_from", DateTime(timezone=True)),
    Column("window_requests", BigInteger, nullable=False, server_default="0"),
    Column("window_tokens", BigInteger, nullable=False, server_default="0"),
    Column("window_counted_at", DateTime(timezone=True)),
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
    Column("used_tokens", BigInteger),
    Index("lease_live_channel", "channel_id", postgresql_where=text("ended_at IS NULL")),
    Index("lease_lapses", "expires_at", postgresql_where=text("ended_at IS NULL")),
    Index("lease_window", "channel_id", "reserved_at"),
    Index("lease_reserved", "reserved_at"),
    Index("lease_overuse", "ended_at", postgresql_where=text("used_tokens > tokens")),
)

catalog = Table(
    "catalog",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, nullable=False),
)
