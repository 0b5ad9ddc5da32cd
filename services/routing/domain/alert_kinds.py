"""What operators are told of by an alert (OPS-6), and what of it they look at first (SLO-2). Pure.

Laws of this file:
- the order is one of consequence, never of age: first what makes work that is done unusable, then books that cannot be
  believed, then money, then work that does not go on, then work that goes on dearer or poorer;
- every kind has one place, and an unknown one comes last: a newer release may have raised it;
- what is merely slow has no kind. It is tried again, or waits, and nobody is called.
"""

CONSEQUENCES = {
    "rights_expired": "what is made with it, or was cleared, may not be used",
    "facts_in_conflict": "what is made contradicts what was settled: all that follows repeats it",
    "release_hash_changed": "what was approved is not what would be shown",
    "invariant_violated": "our own records contradict themselves: no figure drawn from them can be believed",
    "ledger_mismatch": "money or slots are counted wrongly, and every limit with them",
    "submission_unresolved": "a job may be running that nobody follows",
    "cost_anomaly": "money may have been spent twice, or beyond what was held",
    "stuck_state": "work does not go on, or not as it did",
    "exact_supply_unavailable": "a model is not made as it was asked for",
    "budget_hard_limit": "work waits until somebody raises a limit",
    "breaker_opened": "others serve; if they fail too, nobody does",
    "emergency_override_used": "more is paid than was allowed",
    "cost_drift": "each piece costs more, or gives less, than was quoted",
    "degradation_in_use": "work is served with less than was asked for",
    "budget_soft_limit": "fewer work at once, and the limit is near",
}
"""Kind -> what follows while nobody acts, the worst first."""
KINDS = tuple(CONSEQUENCES)
SEVERITIES = ("critical", "high", "medium", "low")
_PLACES = {kind: place for place, kind in enumerate(KINDS)}


def consequence(kind: str) -> int:
    """The place of a kind in the order in which alerts are read: 0 is looked at first."""
    return _PLACES.get(kind, len(KINDS))
