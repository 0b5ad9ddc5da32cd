"""What operators are told of by an alert (OPS-6): the kinds that clients, dashboards and rules know by name."""

KINDS = (
    "exact_supply_unavailable",
    "degradation_in_use",
    "emergency_override_used",
    "submission_unresolved",
    "cost_anomaly",
    "cost_drift",
    "budget_soft_limit",
    "budget_hard_limit",
    "breaker_opened",
    "stuck_state",
    "ledger_mismatch",
    "invariant_violated",
)
SEVERITIES = ("critical", "high", "medium", "low")
