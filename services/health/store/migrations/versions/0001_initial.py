"""Health of Channels and Supplies, its immutable history, outcomes by Attempt."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

REFUSE = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME;
END
$$
"""


MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables."""
    _health()
    _history()
    _outcomes()
    catalog = op.create_table(
        "catalog",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(catalog, [{"id": 1, "revision": 0}])


def _health() -> None:
    for name in ("channel_health", "supply_health"):
        op.create_table(
            name,
            sa.Column("id", sa.Text, primary_key=True),
            sa.Column("channel_id", sa.Text, nullable=False),
            sa.Column("configured", sa.Integer, nullable=False),
            sa.Column("thresholds", JSONB, nullable=False),
            sa.Column("disabled", sa.Boolean, nullable=False),
            sa.Column("retired", sa.Boolean, nullable=False),
            sa.Column("state", sa.Text, nullable=False),
            sa.Column("epoch", sa.BigInteger, nullable=False),
            sa.Column("revision", sa.BigInteger, nullable=False),
            sa.Column("since", MOMENT, nullable=False),
            sa.Column("cooldown_until", MOMENT),
            sa.Column("recovery_successes", sa.Integer, nullable=False),
            sa.Column("reason", sa.Text, nullable=False),
            sa.Column("tally", JSONB, nullable=False),
            sa.Column("sequence", sa.BigInteger, nullable=False),
            postgresql_with={"fillfactor": 70},  # every outcome rewrites a row: leave room on its page
        )


def _history() -> None:
    op.create_table(
        "health_event",
        sa.Column("position", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("subject_kind", sa.Text, nullable=False),
        sa.Column("subject_id", sa.Text, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("before", sa.Text),
        sa.Column("after", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("recovery_successes", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("attempt_id", sa.Text, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("cooldown_until", MOMENT),
        sa.UniqueConstraint("subject_kind", "subject_id", "sequence", name="health_event_sequence"),
    )
    op.execute(REFUSE)
    op.execute(
        "CREATE TRIGGER health_event_immutable BEFORE UPDATE OR DELETE ON health_event "
        "FOR EACH ROW EXECUTE FUNCTION refuse_change()"
    )


def _outcomes() -> None:
    op.create_table(
        "outcome",
        sa.Column("attempt_id", sa.Text, primary_key=True),
        sa.Column("channel_id", sa.Text, nullable=False),
        sa.Column("supply_id", sa.Text, nullable=False),
        sa.Column("channel_epoch", sa.BigInteger, nullable=False),
        sa.Column("supply_epoch", sa.BigInteger, nullable=False),
        sa.Column("category", sa.Text),
        sa.Column("scope", sa.Text),
        sa.Column("code", sa.Text),
        sa.Column("retry_after_s", sa.Double),
        sa.Column("observed_at", MOMENT, nullable=False),
        sa.Column("dispatched_at", MOMENT, nullable=False),
    )
    op.create_index("outcome_observed_at", "outcome", ["observed_at"])
