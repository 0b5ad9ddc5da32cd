"""The tables as they are now."""

from sqlalchemy import BigInteger, Column, DateTime, MetaData, Table, Text, func
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData()

price_books = Table(
    "price_books",
    metadata,
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("currency", Text, nullable=False),
    Column("fx", JSONB, nullable=False),
    Column("specs", JSONB, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
