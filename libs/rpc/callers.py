"""Which context may call which method: the one table that every inner door is held to (AUTH-3).

What stands here is what the code of `services/*/peers` calls; a test compares the two. A method that no context calls
is not in it and closed to contexts: operators reach it with a key by the public port, or over a Unix socket.
"""

from collections.abc import Mapping

_EDGE = frozenset({"edge"})
_ROUTING = frozenset({"routing"})
_RUNS = frozenset({"runs"})
_ALL = frozenset({"health", "cost_quote", "capacity", "provider_adapter", "routing", "runs", "edge"})

_BY_SERVICE: Mapping[str, Mapping[str, frozenset[str]]] = {
    "pointsman.edge.v1.KeyService": {
        "Authenticate": _ALL,
    },
    "pointsman.edge.v1.AdmissionService": {
        "Judge": _ALL,
        "Reveal": _ALL,
    },
    "pointsman.runs.v1.RunsService": {
        "CreateRun": _EDGE,
        "FindRunByKey": _EDGE,
        "GetRun": _EDGE,
        "ListRuns": _EDGE,
        "JoinRun": _EDGE,
        "CancelRun": _EDGE,
        "StreamRunEvents": _EDGE,
        "PauseRun": _EDGE,
        "ResumeRun": _EDGE,
        "SteerRun": _EDGE,
        "RedriveRun": _EDGE,
        "GetServiceLevels": _EDGE,
    },
    "pointsman.runs.v1.ReviewService": {
        "ListReviews": _EDGE,
        "GetReview": _EDGE,
        "ClaimReview": _EDGE,
        "Decide": _EDGE,
    },
    "pointsman.runs.v1.DeadLetterService": {
        "ListDeadLetters": _EDGE,
        "GetDeadLetter": _EDGE,
    },
    "pointsman.runs.v1.CallbackService": {
        "ListCallbacks": _EDGE,
        "RotateSecret": _EDGE,
    },
    "pointsman.routing.v1.RoutingService": {
        "SubmitTask": _RUNS,
        "GetTask": _EDGE | _RUNS,
        "ListTasks": _EDGE | _RUNS,
        "CancelTask": _RUNS,
        "PauseTasks": _RUNS,
        "ListSelections": _EDGE,
        "ExplainTask": _EDGE,
        "ReplaySelection": _EDGE,
        "WhatIf": _EDGE,
        "ResolveAttempt": _EDGE,
        "DeclareRestored": _EDGE,
        "Invoke": _EDGE | _RUNS,
        "InvokeStream": _EDGE,
        "GetCall": _EDGE,
        "ListCalls": _EDGE,
        "TenantBudget": _RUNS,
        "RaiseAlert": _RUNS,
        "ListAlerts": _EDGE,
        "AcknowledgeAlert": _EDGE,
    },
    "pointsman.routing.v1.CatalogService": {
        "Apply": _EDGE,
        "Diff": _EDGE,
        "List": _EDGE,
        "Publish": _EDGE,
        "SetAdminState": _EDGE,
        "ListModels": _EDGE,
        "VerifySupply": _EDGE,
    },
    "pointsman.health.v1.HealthService": {
        "GetSnapshot": _EDGE | _ROUTING,
        "ReportOutcome": _ROUTING,
        "BatchReportOutcomes": _ROUTING,
        "ExplainState": _EDGE | _ROUTING,
        "SetState": _EDGE,
        "ListBreaches": _ROUTING,
        "ApplyTargets": _ROUTING,
    },
    "pointsman.capacity.v1.CapacityService": {
        "Reserve": _ROUTING,
        "BatchReserve": _ROUTING,
        "RenewLeases": _ROUTING,
        "Release": _ROUTING,
        "BatchRelease": _ROUTING,
        "GetCapacity": _EDGE | _ROUTING,
        "ApplyLimits": _ROUTING,
    },
    "pointsman.cost_quote.v1.QuoteService": {
        "QuoteCandidates": _ROUTING,
        "PriceUsage": _ROUTING,
        "ApplyPriceRules": _ROUTING,
    },
    "pointsman.cost_quote.v1.BudgetService": {
        "CreateBudget": _EDGE | _ROUTING | _RUNS,
        "ChangeLimits": _EDGE | _ROUTING | _RUNS,
        "GetBudget": _EDGE | _ROUTING | _RUNS,
        "ListBudgets": _EDGE,
        "ListEntries": _EDGE,
        "CheckLedger": _EDGE | _ROUTING,
        "Hold": _ROUTING | _RUNS,
        "BatchHold": _ROUTING,
        "EnlargeHold": _ROUTING | _RUNS,
        "Settle": _ROUTING | _RUNS,
        "BatchSettle": _ROUTING,
        "ReleaseHold": _ROUTING | _RUNS,
        "ListOpenHolds": _ROUTING,
    },
    "pointsman.provider_adapter.v1.ProviderService": {
        "Submit": _ROUTING,
        "Poll": _ROUTING,
        "Cancel": _ROUTING,
        "Reconcile": _ROUTING,
        "Invoke": _ROUTING,
        "InvokeStream": _ROUTING,
        "ListAdapters": _ROUTING,
        "CheckSecrets": _ROUTING,
    },
}

CALLERS: Mapping[str, frozenset[str]] = {
    f"/{service}/{method}": callers for service, methods in _BY_SERVICE.items() for method, callers in methods.items()
}
"""Path of a method -> the contexts that may call it."""
