"""The tables as they are now."""

from sqlalchemy import BigInteger, Column, DateTime, ForeignKey, Index, Integer, MetaData, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData()

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("labels", JSONB, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("last_sequence", BigInteger, nullable=False),
    Column("document", JSONB, nullable=False),
    Index("runs_of_tenant", "tenant", "id"),
    Index("runs_live", "state", "id", postgresql_where=text("state IN ('pending', 'running')")),
)

run_keys = Table(
    "run_keys",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("runs.id", deferrable=True, initially="DEFERRED"), nullable=False),
    Column("fingerprint", Text, nullable=False),
)

run_events = Table(
    "run_events",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("data", JSONB, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)
