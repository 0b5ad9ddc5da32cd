"""The queue: a narrow table of what was never claimed, timers for the rest, and the lines of virtual time."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

QUEUED_TIMER = sa.text("state = 'queued' AND timer_at IS NOT NULL")
FOLLOWED = sa.text("state IN ('dispatching', 'running')")
URGENT = sa.text("(state = 'dispatching' OR state = 'running' AND cancel_requested)")
UNTIMED = sa.text("state IN ('queued', 'dispatching', 'running') AND timer_at IS NULL")
PARKED = sa.text("parked_at IS NOT NULL")
# What is small and rewritten all the time is to be cleaned at once, whatever share of it is dead.
CHURN = {"autovacuum_vacuum_scale_factor": 0, "autovacuum_vacuum_threshold": 1000, "autovacuum_vacuum_cost_delay": 0}


def upgrade() -> None:
    """Make the tables, give every open Task a timer, and replace the indexes that were the queue."""
    op.add_column("tasks", sa.Column("tag", sa.Double, nullable=False, server_default="0"))
    op.add_column("tasks", sa.Column("timer_at", sa.DateTime(timezone=True)))
    op.add_column("tasks", sa.Column("parked_at", sa.DateTime(timezone=True)))
    op.execute(
        "UPDATE tasks SET timer_at = coalesce(greatest(next_action_at, claimed_until), now())"
        " WHERE state IN ('queued', 'dispatching', 'running')"
    )
    op.alter_column("tasks", "tag", server_default=None)
    for name in ("tasks_to_dispatch", "tasks_to_follow", "tasks_waiting"):
        op.drop_index(name, "tasks")
    op.create_index("tasks_queued_timer", "tasks", ["timer_at", "id"], postgresql_where=QUEUED_TIMER)
    op.create_index("tasks_followed_timer", "tasks", ["timer_at", "id"], postgresql_where=FOLLOWED)
    op.create_index("tasks_urgent_timer", "tasks", ["timer_at", "id"], postgresql_where=URGENT)
    op.create_index("tasks_untimed", "tasks", ["id"], postgresql_where=UNTIMED)
    op.create_index("tasks_parked", "tasks", ["model", "tag", "id"], postgresql_where=PARKED)
    op.create_table(
        "ready",
        sa.Column("task_id", sa.Text, primary_key=True),
        sa.Column("tag", sa.Double, nullable=False),
        postgresql_with=CHURN,
    )
    op.create_index("ready_by_tag", "ready", ["tag", "task_id"])
    op.create_table(
        "lines",
        sa.Column("tenant", sa.Text, primary_key=True),
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("urgency", sa.SmallInteger, primary_key=True),
        sa.Column("finish", sa.Double, nullable=False),
        postgresql_with={**CHURN, "fillfactor": 50},
    )
