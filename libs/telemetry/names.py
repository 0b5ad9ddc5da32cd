"""Every metric and span name of Pointsman, in one list. A name that is not here cannot be recorded.

Laws of this file:
- metrics begin with `pointsman_`, end in their unit (`_seconds`, `_bytes`) or in `_total` for counters;
- labels are few and bounded: ids of the catalogue, states, codes; never a task, a run, a request or a text;
- spans are `pointsman.<context>.<verb>`; generative calls follow the OpenTelemetry GenAI conventions (`gen_ai.*`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Kind(StrEnum):
    """What a metric counts."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


# Bucket limits in seconds. A loopback call takes some 20 microseconds, a clip some minutes.
FAST = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
SLOW = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name on the page, what it tells, its labels in order, and for histograms the bucket limits."""

    kind: Kind
    name: str
    tells: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def _counter(name: str, tells: str, *labels: str) -> Metric:
    return Metric(Kind.COUNTER, name, tells, labels)


def _gauge(name: str, tells: str, *labels: str) -> Metric:
    return Metric(Kind.GAUGE, name, tells, labels)


def _histogram(name: str, tells: str, *labels: str, buckets: tuple[float, ...] = SLOW) -> Metric:
    return Metric(Kind.HISTOGRAM, name, tells, labels, buckets)


# --- the channel ---
RPC_SERVER_SECONDS = _histogram(
    "pointsman_rpc_server_seconds", "Time in a handler, by method", "service", "method", buckets=FAST
)
RPC_SERVER_ENDED = _counter(
    "pointsman_rpc_server_ended_total", "Calls served, by how they ended (ok or the code of the fault)",
    "service", "method", "outcome",
)  # fmt: skip
RPC_CLIENT_FAULTS = _counter("pointsman_rpc_client_faults_total", "Calls to peers that ended in a fault", "code")

# --- the edge ---
HTTP_SECONDS = _histogram("pointsman_http_seconds", "Time to answer a request, by route", "route", "method", "status")
HTTP_STREAMS = _gauge("pointsman_http_streams", "Event streams open now")
HTTP_PROBLEMS = _counter("pointsman_http_problems_total", "Answers that were a problem, by code", "code")

# --- runs ---
RUNS_CREATED = _counter("pointsman_runs_created_total", "Runs created", "model")
RUNS_ENDED = _counter("pointsman_runs_ended_total", "Runs that came to an end, by status", "model", "status")
RUN_SECONDS = _histogram("pointsman_run_seconds", "Time from the creation of a run to its end", "model", "status")
RUNS_OPEN = _gauge("pointsman_runs_open", "Runs that have not ended, by status", "status")
SLO_RATIO = _gauge(
    "pointsman_slo_ratio",
    "Of the last day: success_rate, first_pass_yield, retry_rate, rebuild_success; model empty = of all",
    "figure", "model",
)  # fmt: skip
SLO_SECONDS = _gauge(
    "pointsman_slo_seconds", "Means of the last day: queue_time, review_wait, stale_propagation", "figure", "model"
)
SLO_COST = _gauge(
    "pointsman_slo_cost_per_usable_second", "Of the last day, in units of the currency", "model", "currency"
)

# --- routing ---
TASKS_OPEN = _gauge("pointsman_tasks_open", "Tasks that have not ended, by state", "state")
TASKS_ENDED = _counter("pointsman_tasks_ended_total", "Tasks that came to an end, by state", "model", "state")
TASK_WAIT_SECONDS = _histogram(
    "pointsman_task_wait_seconds", "Time from acceptance of a task to its submission", "kind"
)
QUEUE_AGE_SECONDS = _gauge("pointsman_queue_age_seconds", "Age of the oldest task that waits", "kind")
SELECTIONS = _counter("pointsman_selections_total", "Selection rounds, by result", "model", "result", "tier")
SELECTION_SECONDS = _histogram(
    "pointsman_selection_seconds", "Time of the pure selection of one round", "model", buckets=FAST
)
CANDIDATES_DROPPED = _counter("pointsman_candidates_dropped_total", "Supplies dropped in selection", "step", "reason")
ATTEMPTS_ENDED = _counter("pointsman_attempts_ended_total", "Attempts that came to an end", "supply", "state", "code")
ATTEMPT_SECONDS = _histogram("pointsman_attempt_seconds", "Time from submission of an attempt to its end", "supply")
ATTEMPTS_UNCERTAIN = _gauge("pointsman_attempts_uncertain", "Attempts whose submission is not resolved", "supply")
DEGRADED_RESULTS = _counter(
    "pointsman_degraded_results_total", "Results made under a degradation rule", "model", "rule"
)

CALLS_ENDED = _counter(
    "pointsman_calls_ended_total", "Synchronous calls that came to an end, by state and code", "model", "state", "code"
)
CALL_SECONDS = _histogram(
    "pointsman_call_seconds", "Time of a synchronous call: all of it (wall), waiting (stall), our own work (overhead)",
    "model", "part",
)  # fmt: skip
CALLS_CACHED = _counter("pointsman_calls_cached_total", "Calls answered from the response cache", "model")
CALL_ATTEMPTS_ENDED = _counter(
    "pointsman_call_attempts_ended_total", "Tries of synchronous calls, by how they ended", "supply", "state", "code"
)
CALL_ATTEMPT_SECONDS = _histogram("pointsman_call_attempt_seconds", "Time of one try of a synchronous call", "supply")
CALL_FIRST_TOKEN_SECONDS = _histogram(
    "pointsman_call_first_token_seconds", "Time from the start of a try to its first token, or to its answer", "supply"
)
CALL_TOKENS = _counter(
    "pointsman_call_tokens_total", "Tokens that providers reported: input, cached_input, output, reasoning",
    "supply", "sort",
)  # fmt: skip

# --- capacity ---
CAPACITY_IN_USE = _gauge("pointsman_capacity_in_use", "Leases held", "object_kind", "object")
CAPACITY_EFFECTIVE = _gauge("pointsman_capacity_effective", "Slots that may be held now", "object_kind", "object")
RESERVATIONS = _counter("pointsman_reservations_total", "Reservations, by result and binding gate", "result", "gate")
LEASES_EXPIRED = _counter("pointsman_leases_expired_total", "Leases that ended by their TTL")

# --- health ---
HEALTH_STATE = _gauge("pointsman_health_state", "1 for the present state", "object_kind", "object", "state")
HEALTH_TRANSITIONS = _counter(
    "pointsman_health_transitions_total", "Changes of state", "object_kind", "object", "from_state", "to_state"
)
HEALTH_OUTCOMES = _counter("pointsman_health_outcomes_total", "Outcomes reported", "object_kind", "object", "result")

# --- cost_quote ---
QUOTES = _counter("pointsman_quotes_total", "Quotes given, by result", "result")
COST = _counter("pointsman_cost_total", "Money spent, in units of the currency", "supply", "currency")
BUDGET_HOLDS = _counter(
    "pointsman_budget_holds_total", "Holds asked for, by result and refusing dimension", "result", "dimension"
)
BUDGET_OVERRUNS = _counter("pointsman_budget_overruns_total", "Settlements that cost more than had been held")
LEDGER_MISMATCHES = _gauge(
    "pointsman_ledger_mismatches", "Contradictions between budgets and their entries; anything but 0 is a bug"
)

# --- provider_adapter ---
PROVIDER_SECONDS = _histogram(
    "pointsman_provider_seconds", "Time of one exchange with a provider", "adapter", "channel", "phase"
)
PROVIDER_ENDED = _counter(
    "pointsman_provider_ended_total", "Exchanges with providers, by code", "adapter", "channel", "phase", "code"
)
PROVIDER_UNKNOWN_FIELDS = _counter(
    "pointsman_provider_unknown_fields_total", "Fields in replies that nobody accounts for", "adapter", "phase"
)
PROVIDER_BYTES = _counter("pointsman_provider_bytes_total", "Bytes of results fetched", "adapter", "channel")

# --- the process ---
ALERTS_OPEN = _gauge("pointsman_alerts_open", "Alerts not acknowledged", "kind", "severity")
TICK_SECONDS = _histogram("pointsman_tick_seconds", "Time of one round of a background loop", "context", "tick")
TICK_FAILURES = _counter("pointsman_tick_failures_total", "Rounds of a background loop that failed", "context", "tick")
DATABASE_CONNECTIONS = _gauge("pointsman_database_connections", "Connections in use", "context")

METRICS: Mapping[str, Metric] = MappingProxyType(
    {value.name: value for value in list(globals().values()) if isinstance(value, Metric)}
)

# --- spans ---
SPAN_HTTP = "pointsman.edge.request"
SPAN_RUN_ADVANCE = "pointsman.runs.advance"
SPAN_TASK_ADVANCE = "pointsman.routing.advance"
SPAN_SELECT = "pointsman.routing.select"
SPAN_SUBMIT = "pointsman.provider_adapter.submit"
SPAN_POLL = "pointsman.provider_adapter.poll"
SPAN_RECONCILE = "pointsman.provider_adapter.reconcile"
SPAN_INVOKE = "pointsman.provider_adapter.invoke"
SPAN_CANCEL = "pointsman.provider_adapter.cancel"

SPANS: tuple[str, ...] = tuple(
    value for name, value in list(globals().items()) if name.startswith("SPAN_") and isinstance(value, str)
)

# Attribute names of spans and keys of log lines that several contexts use. RPC spans are named by their method
# ("pointsman.health.v1.HealthService/GetSnapshot"), as the OpenTelemetry conventions ask.
ATTRIBUTES: tuple[str, ...] = (
    "rpc.system", "rpc.service", "rpc.method", "rpc.grpc.status_code", "pointsman.outcome", "pointsman.caller",
    "pointsman.request_id", "pointsman.tenant", "pointsman.run_id", "pointsman.task_id", "pointsman.attempt_id",
    "pointsman.supply", "pointsman.channel", "pointsman.model", "gen_ai.operation.name", "gen_ai.provider.name",
    "gen_ai.request.model", "gen_ai.response.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens",
    "gen_ai.conversation.id", "error.type", "pointsman.call_id", "pointsman.parent_call_id",
)  # fmt: skip
