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
    Column("production", JSONB(none_as_null=True)),
    Column("earliest", BigInteger, nullable=False, server_default="1"),
    Index("runs_of_tenant", "tenant", "id"),
    Index("runs_live", "state", "id", postgresql_where=text("state IN ('pending', 'running', 'paused')")),
    Index(
        "productions_live",
        "id",
        postgresql_where=text("production IS NOT NULL AND state IN ('pending', 'running', 'paused')"),
    ),
    Index(
        "runs_prunable",
        "id",
        postgresql_where=text(
            "state IN ('succeeded', 'failed', 'timed_out', 'cancelled') AND earliest < last_sequence"
        ),
    ),
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

reviews = Table(
    "reviews",
    metadata,
    Column("id", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("runs.id"), nullable=False),
    Column("tenant", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("root_cause", Text, nullable=False),
    Column("opened_at", DateTime(timezone=True), nullable=False),
    Column("document", JSONB, nullable=False),
    Index("reviews_waiting", "tenant", "rank", "opened_at", postgresql_where=text("state IN ('open', 'claimed')")),
    Index("reviews_of_run", "run_id"),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("runs.id"), nullable=False),
    Column("node", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("redriven_at", DateTime(timezone=True)),
    Column("redrive_reason", Text, nullable=False),
    Column("document", JSONB, nullable=False),
    Index("dead_letters_of_run", "run_id"),
    Index("dead_letters_by_time", "created_at", "id"),
)

memos = Table(
    "memos",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("input_hash", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("runs.id"), nullable=False),
    Column("document", JSONB, nullable=False),
)

callbacks = Table(
    "callbacks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("runs.id"), nullable=False),
    Column("tenant", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("next_at", DateTime(timezone=True), nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("last_error", Text, nullable=False),
    Column("finished_at", DateTime(timezone=True)),
    Index("callbacks_due", "next_at", "id", postgresql_where=text("state = 'pending'")),
    Index("callbacks_of_run", "run_id"),
)

webhook_secrets = Table(
    "webhook_secrets",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("sealed", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Index("webhook_secrets_of_tenant", "tenant", "id"),
)
