"""Tasks, their Attempts and selection rounds, and alerts."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"

LIVE = "state IN ('reserved', 'submitting', 'accepted', 'running', 'submission_uncertain')"
QUEUED = sa.text("state = 'queued'")


def upgrade() -> None:
    """Make the tables."""
    _tasks()
    _attempts()
    _selections()
    _alerts()


def _moment(name: str, nullable: bool = True) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("tenant", "model", "kind", "state")),
        sa.Column("urgency", sa.SmallInteger, nullable=False),
        sa.Column("request", JSONB, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("run_id", "node_id", "currency")),
        sa.Column("spent", sa.Numeric, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("revision", "epoch")),
        sa.Column("worker", sa.Text, nullable=False),
        _moment("claimed_until"),
        _moment("next_action_at"),
        sa.Column("waiting_reason", sa.Text, nullable=False),
        sa.Column("rounds", sa.Integer, nullable=False),
        sa.Column("round_key", sa.Text, nullable=False),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("cancel_reason", sa.Text, nullable=False),
        sa.Column("result", JSONB),
        sa.Column("failure", JSONB),
        _moment("created_at", nullable=False),
        _moment("finished_at"),
        # Claims keep rewriting few rows: room on the page lets most of those updates spare the indexes.
        postgresql_with={"fillfactor": 70},
    )
    followed = sa.text("state IN ('dispatching', 'running')")
    op.create_index("tasks_by_age", "tasks", ["created_at", "id"])
    op.create_index("tasks_of_tenant", "tasks", ["tenant", "created_at", "id"])
    op.create_index("tasks_to_dispatch", "tasks", ["urgency", "next_action_at", "id"], postgresql_where=QUEUED)
    op.create_index("tasks_to_follow", "tasks", ["next_action_at", "id"], postgresql_where=followed)
    op.create_index("tasks_waiting", "tasks", ["urgency", "created_at", "id"], postgresql_where=QUEUED)


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("task_id", sa.Text, sa.ForeignKey("tasks.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("supply", "channel", "state", "client_token")),
        sa.Column("provider_task_id", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("quote", sa.Numeric, nullable=False),
        sa.Column("cost", sa.Numeric),
        sa.Column("lease_id", sa.Text, nullable=False),
        *(
            sa.Column(name, sa.BigInteger, nullable=False)
            for name in ("channel_epoch", "supply_epoch", "catalog_revision")
        ),
        sa.Column("input", JSONB, nullable=False),
        sa.Column("degradation", JSONB),
        sa.Column("failure", JSONB),
        *(sa.Column(name, sa.Boolean, nullable=False) for name in ("counted", "report_pending")),
        sa.Column("poll_failures", sa.Integer, nullable=False),
        _moment("polls_failing_since"),
        sa.Column("reconcile_count", sa.Integer, nullable=False),
        _moment("uncertain_deadline"),
        sa.Column("cancel_tried", sa.Integer, nullable=False),
        sa.Column("cancel_refused", sa.Boolean, nullable=False),
        sa.Column("resolution", sa.Text, nullable=False),
        *(_moment(name) for name in ("reserved_at", "submitted_at", "accepted_at", "finished_at")),
        postgresql_with={"fillfactor": 70},
    )
    in_doubt = sa.text("state IN ('submission_uncertain', 'unresolved')")
    op.create_index("attempts_of_task", "attempts", ["task_id", "number"], unique=True)
    op.create_index("attempts_live", "attempts", ["task_id"], unique=True, postgresql_where=sa.text(LIVE))
    op.create_index("attempts_in_doubt", "attempts", ["task_id"], postgresql_where=in_doubt)
    op.create_index("attempts_to_report", "attempts", ["finished_at", "id"], postgresql_where=sa.text("report_pending"))


def _selections() -> None:
    op.create_table(
        "selections",
        sa.Column("task_id", sa.Text, sa.ForeignKey("tasks.id"), primary_key=True),
        sa.Column("round", sa.Integer, primary_key=True),
        _moment("decided_at", nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("outcome", "note", "record")),
    )


def _alerts() -> None:
    names = ("key", "kind", "severity", "subject", "message", "cause", "link")
    op.create_table(
        "alerts",
        sa.Column("id", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in names),
        sa.Column("count", sa.Integer, nullable=False),
        _moment("created_at", nullable=False),
        _moment("acknowledged_at"),
    )
    unacknowledged = sa.text("acknowledged_at IS NULL")
    op.create_index("alerts_open", "alerts", ["key"], unique=True, postgresql_where=unacknowledged)
    op.create_index("alerts_by_age", "alerts", ["created_at", "id"])
