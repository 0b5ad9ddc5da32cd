"""The tables of the catalogue as they are now. Rows are added and never changed (CAT-2).

`catalog_revisions` holds every revision whole, so that what an Attempt used is read back in one step; `catalog_objects`
holds every revision of every object, so that one is compared and listed without the rest.
"""

from sqlalchemy import BigInteger, Boolean, Column, DateTime, ForeignKey, Index, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData()

catalog_revisions = Table(
    "catalog_revisions",
    metadata,
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("currency", Text, nullable=False),
    Column("fx", JSONB, nullable=False),
    Column("snapshot", JSONB, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
)

verifications = Table(
    "verifications",
    metadata,
    Column("id", Text, primary_key=True),
    Column("supply", Text(collation="C"), nullable=False),
    Column("record", JSONB, nullable=False),
    Column("finished_at", DateTime(timezone=True)),
    Index("verifications_of_supply", "supply", "finished_at"),
)
"""What regression sets have shown of Supplies; a row changes once, when its verification ends."""

catalog_objects = Table(
    "catalog_objects",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("id", Text(collation="C"), primary_key=True),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("spec", JSONB, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("published", Boolean, nullable=False),
    Column("retired", Boolean, nullable=False),
    Column("admin", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("catalog_revision", BigInteger, ForeignKey("catalog_revisions.revision"), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Index("catalog_objects_of_revision", "catalog_revision"),
)
