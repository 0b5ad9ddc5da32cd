"""The tables of Tasks as they are now. Money is a currency and an exact amount; JSON holds values, never decisions.

`tasks` is the truth; the queue beside it is small and made for its churn: `ready` holds a narrow row for each Task that
was never claimed, partial indexes hold what has not ended, so that what has ended costs a claim nothing. Step by step
of its life a Task is one row that is updated, its Attempts and rounds are rows that stay.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    FetchedValue,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Numeric,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData()

LIVE = "state IN ('reserved', 'submitting', 'accepted', 'running', 'submission_uncertain')"
FOLLOWED = "state IN ('dispatching', 'running')"
URGENT = "(state = 'dispatching' OR state = 'running' AND cancel_requested)"
OPEN = "state IN ('queued', 'dispatching', 'running')"

tasks = Table(
    "tasks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("urgency", SmallInteger, nullable=False),  # place of the class in domain.fairness
    Column("request", JSONB, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("node_id", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("spent", Numeric, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("worker", Text, nullable=False),
    Column("claimed_until", DateTime(timezone=True)),
    Column("next_action_at", DateTime(timezone=True)),
    Column("waiting_reason", Text, nullable=False),
    Column("rounds", Integer, nullable=False),
    Column("round_key", Text, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("cancel_reason", Text, nullable=False),
    Column("paused", Boolean, nullable=False, server_default=text("false")),
    Column("doubted_since", DateTime(timezone=True)),  # may have been sent between these two: see domain.doubt
    Column("doubted_until", DateTime(timezone=True)),
    Column("traceparent", Text, nullable=False, server_default=""),
    Column("result", JSONB),
    Column("failure", JSONB),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("finished_at", DateTime(timezone=True)),
    Column("deadline", DateTime(timezone=True)),
    Column("tag", Double, nullable=False),  # its place in virtual time: see domain.fairness
    Column("timer_at", DateTime(timezone=True)),  # when a scan finds it; null while in `ready`, and once it has ended
    Column("parked_at", DateTime(timezone=True)),  # when it last looked, while it waits to be woken
    Column("turn_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),  # see domain.shares
    Index("tasks_by_age", "created_at", "id"),
    Index("tasks_of_tenant", "tenant", "created_at", "id"),
    Index("tasks_queued_timer", "timer_at", "id", postgresql_where=text("state = 'queued' AND timer_at IS NOT NULL")),
    Index("tasks_followed_timer", "timer_at", "id", postgresql_where=text(FOLLOWED)),
    Index("tasks_urgent_timer", "timer_at", "id", postgresql_where=text(URGENT)),
    Index("tasks_untimed", "id", postgresql_where=text(f"{OPEN} AND timer_at IS NULL")),
    Index("tasks_open_of_tenant", "tenant", "state", "run_id", "id", postgresql_where=text(OPEN)),
    Index(
        "tasks_late",
        *("deadline", "id"),
        postgresql_where=text("state = 'queued' AND timer_at IS NULL AND deadline IS NOT NULL"),
    ),
    Index("tasks_parked_alike", "model", "round_key", "tag", "id", postgresql_where=text("parked_at IS NOT NULL")),
    Index(
        "tasks_parked_turns",
        *("model", "tenant", "urgency", "turn_at", "id"),
        postgresql_where=text("parked_at IS NOT NULL"),
    ),
)
"""Tasks, and the queue of those that have not ended."""

ready = Table(
    "ready",
    metadata,
    Column("task_id", Text, primary_key=True),
    Column("tag", Double, nullable=False),
    Index("ready_by_tag", "tag", "task_id"),
)
"""Tasks that were never claimed: a row for each, deleted by its first claim."""

lines = Table(
    "lines",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("urgency", SmallInteger, primary_key=True),
    Column("finish", Double, nullable=False),
)
"""Where each line stands in virtual time: the tag of its next Task, unless virtual time has passed it."""

attempts = Table(
    "attempts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("task_id", Text, ForeignKey("tasks.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("supply", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("client_token", Text, nullable=False),
    Column("provider_task_id", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("round", Integer, nullable=False),
    Column("currency", Text, nullable=False),
    Column("quote", Numeric, nullable=False),
    Column("price_rule", Text, nullable=False, server_default=""),
    Column("price_version", Integer, nullable=False, server_default="0"),
    Column("quote_kind", Text, nullable=False, server_default=""),
    Column("cost", Numeric),
    Column("lease_id", Text, nullable=False),
    Column("channel_epoch", BigInteger, nullable=False),
    Column("supply_epoch", BigInteger, nullable=False),
    Column("catalog_revision", BigInteger, nullable=False),
    Column("input", JSONB, nullable=False),
    Column("degradation", JSONB),
    Column("failure", JSONB),
    Column("counted", Boolean, nullable=False),
    Column("report_pending", Boolean, nullable=False),
    Column("poll_failures", Integer, nullable=False),
    Column("polls_failing_since", DateTime(timezone=True)),
    Column("reconcile_count", Integer, nullable=False),
    Column("uncertain_deadline", DateTime(timezone=True)),
    Column("cancel_tried", Integer, nullable=False),
    Column("cancel_refused", Boolean, nullable=False),
    Column("resolution", Text, nullable=False),
    Column("reserved_at", DateTime(timezone=True)),
    Column("submitted_at", DateTime(timezone=True)),
    Column("accepted_at", DateTime(timezone=True)),
    Column("finished_at", DateTime(timezone=True)),
    Column("late_look_at", DateTime(timezone=True)),
    Column("late_looks", Integer, nullable=False, server_default="0"),
    Column("late", JSONB(none_as_null=True)),
    Column("doubted", Boolean, nullable=False, server_default=text("false")),
    Column("silent_since", BigInteger),
    Index("attempts_of_task", "task_id", "number", unique=True),
    Index("attempts_live", "task_id", unique=True, postgresql_where=text(LIVE)),
    Index("attempts_in_doubt", "task_id", postgresql_where=text("state IN ('submission_uncertain', 'unresolved')")),
    Index("attempts_to_report", "finished_at", "id", postgresql_where=text("report_pending")),
    Index("attempts_to_hear", "late_look_at", "id", postgresql_where=text("late_look_at IS NOT NULL")),
)
"""Attempts: never removed; the unique index `attempts_live` is the law that a Task has one live Attempt at most."""

life = Table(
    "life",
    metadata,
    Column("one", Boolean, primary_key=True),
    Column("database", Text, nullable=False),
    Column("beat", BigInteger, nullable=False),
    Column("beaten_at", DateTime(timezone=True), nullable=False),
    Column("pulse", BigInteger, nullable=False, server_default="0"),
)
"""One row: which database this is, and how long it has lived. A copy that was put back has lived less."""

restores = Table(
    "restores",
    metadata,
    Column("backup_at", DateTime(timezone=True), primary_key=True),
    Column("noticed_at", DateTime(timezone=True), nullable=False),
    Column("over_at", DateTime(timezone=True)),
    Column("pulse", BigInteger, nullable=False, server_default="0"),
)
"""Every time that it was put back, as far as it was noticed."""

selections = Table(
    "selections",
    metadata,
    Column("task_id", Text, ForeignKey("tasks.id"), primary_key=True),
    Column("round", Integer, primary_key=True),
    Column("decided_at", DateTime(timezone=True), nullable=False),
    Column("outcome", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("record", Text, nullable=False),  # text, not jsonb: a replay compares bytes
    Index("selections_by_time", "decided_at", "task_id", "round"),
)
"""Selection rounds: appended, never changed."""

alerts = Table(
    "alerts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("cause", Text, nullable=False),
    Column("link", Text, nullable=False),
    Column("count", Integer, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("acknowledged_at", DateTime(timezone=True)),
    Column("measure", JSONB(none_as_null=True)),
    Column("consequence", SmallInteger, FetchedValue(), nullable=False),
    Index("alerts_open", "key", unique=True, postgresql_where=text("acknowledged_at IS NULL")),
    Index(
        "alerts_in_order",
        text("(acknowledged_at IS NOT NULL)"),
        "consequence",
        text("created_at DESC"),
        text("id DESC"),
    ),
)
"""Alerts: one open row for each dedupe key. `consequence` is worked out from the kind, also of rows that the release
before writes: 0 is read first."""
