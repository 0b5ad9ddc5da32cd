"""The catalogue: every revision whole, and every revision of every object."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "catalog_revisions",
        sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("fx", JSONB, nullable=False),
        sa.Column("snapshot", JSONB, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "catalog_objects",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("id", sa.Text(collation="C"), primary_key=True),
        sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("spec", JSONB, nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("published", sa.Boolean, nullable=False),
        sa.Column("retired", sa.Boolean, nullable=False),
        sa.Column("admin", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("catalog_revision", sa.BigInteger, sa.ForeignKey("catalog_revisions.revision"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("catalog_objects_of_revision", "catalog_objects", ["catalog_revision"])
