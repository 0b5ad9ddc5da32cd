"""What the toy's tables are now. No schema is named: the session's search_path is the context's schema."""

from sqlalchemy import Column, DateTime, Index, Integer, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData()

notes = Table(
    "notes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("body", JSONB, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Index("notes_by_time", "created_at", "id"),
)
