"""Alerts in the order of their consequences, and with what was measured; the database works out the place of a kind, so
that rows of the release before have theirs too."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0015"
down_revision = "0014"

KINDS = (
    "rights_expired",
    "facts_in_conflict",
    "release_hash_changed",
    "invariant_violated",
    "ledger_mismatch",
    "submission_unresolved",
    "cost_anomaly",
    "stuck_state",
    "exact_supply_unavailable",
    "budget_hard_limit",
    "breaker_opened",
    "emergency_override_used",
    "cost_drift",
    "degradation_in_use",
    "budget_soft_limit",
)
_WHENS = " ".join(f"WHEN '{kind}' THEN {place}" for place, kind in enumerate(KINDS))
PLACE = f"CASE kind {_WHENS} ELSE {len(KINDS)} END"


def upgrade() -> None:
    """Add the columns and the index that a page is read by; nothing reads alerts by age alone any more."""
    op.add_column("alerts", sa.Column("measure", JSONB))
    op.add_column(
        "alerts", sa.Column("consequence", sa.SmallInteger, sa.Computed(PLACE, persisted=True), nullable=False)
    )
    op.create_index(
        "alerts_in_order",
        "alerts",
        [sa.text("(acknowledged_at IS NOT NULL)"), "consequence", sa.text("created_at DESC"), sa.text("id DESC")],
    )
    op.drop_index("alerts_by_age", "alerts")
