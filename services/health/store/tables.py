"""The tables as they are now. Channels and Supplies have one each, of the same shape."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB

from services.health.domain.subjects import Kind

metadata = MetaData()


def _health(name: str) -> Table:
    return Table(
        name,
        metadata,
        Column("id", Text, primary_key=True),
        Column("channel_id", Text, nullable=False),
        Column("configured", Integer, nullable=False),
        Column("thresholds", JSONB, nullable=False),
        Column("disabled", Boolean, nullable=False),
        Column("retired", Boolean, nullable=False),
        Column("state", Text, nullable=False),
        Column("epoch", BigInteger, nullable=False),
        Column("revision", BigInteger, nullable=False),
        Column("since", DateTime(timezone=True), nullable=False),
        Column("cooldown_until", DateTime(timezone=True)),
        Column("recovery_successes", Integer, nullable=False),
        Column("reason", Text, nullable=False),
        Column("tally", JSONB, nullable=False),
        Column("sequence", BigInteger, nullable=False),
    )


channel_health = _health("channel_health")
supply_health = _health("supply_health")
HEALTH = {Kind.CHANNEL: channel_health, Kind.SUPPLY: supply_health}

health_event = Table(
    "health_event",
    metadata,
    Column("position", BigInteger, Identity(always=True), primary_key=True),
    Column("subject_kind", Text, nullable=False),
    Column("subject_id", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("before", Text),
    Column("after", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("recovery_successes", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempt_id", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("cooldown_until", DateTime(timezone=True)),
    UniqueConstraint("subject_kind", "subject_id", "sequence", name="health_event_sequence"),
)

outcome = Table(
    "outcome",
    metadata,
    Column("attempt_id", Text, primary_key=True),
    Column("channel_id", Text, nullable=False),
    Column("supply_id", Text, nullable=False),
    Column("channel_epoch", BigInteger, nullable=False),
    Column("supply_epoch", BigInteger, nullable=False),
    Column("category", Text),
    Column("scope", Text),
    Column("code", Text),
    Column("retry_after_s", Double),
    Column("observed_at", DateTime(timezone=True), nullable=False),
    Column("dispatched_at", DateTime(timezone=True), nullable=False),
    Index("outcome_observed_at", "observed_at"),
)

catalog = Table(
    "catalog",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, nullable=False),
)
