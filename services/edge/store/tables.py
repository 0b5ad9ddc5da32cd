"""The tables as they are now."""

from sqlalchemy import BigInteger, Column, DateTime, Index, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData()

keys = Table(
    "keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("scopes", JSONB, nullable=False),
    Column("digest", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    Column("former_digest", Text),
    Column("former_until", DateTime(timezone=True)),
    Index("keys_of_tenant", "tenant", "id"),
)

artifact_owners = Table(
    "artifact_owners",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("sha256", Text, primary_key=True),
    Column("created_at", DateTime(timezone=True), nullable=False),
)

request_counts = Table(
    "request_counts",
    metadata,
    Column("minute", BigInteger, primary_key=True, autoincrement=False),
    Column("tenant", Text, primary_key=True),
    Column("replica", Text, primary_key=True),
    Column("requests", BigInteger, nullable=False),
    prefixes=["UNLOGGED"],
)
"""What each replica has let in, by tenant and minute; a few minutes are kept, and none over a crash."""
