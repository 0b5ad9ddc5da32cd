"""Every name of a metric, a span and an attribute of Pointsman, in one list. What is not here cannot be recorded.

docs/guides/telemetry.md shows the list with units and meanings; tests/tidy hold both to each other, and hold that no
other file spells a name.

Laws of this file:
- metrics begin with `pointsman_`, end in their unit (`_seconds`, `_bytes`) or in `_total` for counters; those of the
  OpenTelemetry GenAI conventions, version 1.41.0, bear their own names (`gen_ai.*`), which the page for Prometheus
  spells with underscores and the unit, as the conventions ask;
- labels are few and bounded: ids of the catalogue, states, codes; never a task, a run, a request or a text;
- spans are `pointsman.<context>.<verb>`; a call of a method bears the method's name, a request that of its route, and
  a generative call what is done and by which model, as the conventions ask;
- attributes are figures, ids and codes: nothing that a user wrote or that a model answered (ERR-4).
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
# Bucket limits that the GenAI conventions ask for.
GEN_AI_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
GEN_AI_TOKENS = tuple(float(4**power) for power in range(14))
UNITS = {"seconds": "s", "bytes": "By"}
"""Units by the word that a name ends in, as UCUM spells them."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, what it tells, its labels in order, and for histograms the bucket limits.

    `measured_in` is the unit where the name does not end in it.
    """

    kind: Kind
    name: str
    tells: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    measured_in: str = ""

    @property
    def unit(self) -> str:
        """The unit in UCUM: `s`, `By`, `{token}`; `1` for a count and for a ratio."""
        word = self.name.removesuffix("_total").rpartition("_")[2]
        return self.measured_in or UNITS.get(word, "1")

    @property
    def page_name(self) -> str:
        """The name on the page for Prometheus."""
        if "." not in self.name:
            return self.name
        word = next((word for word, unit in UNITS.items() if unit == self.unit), "")
        return self.name.replace(".", "_") + (f"_{word}" if word else "")

    @property
    def page_labels(self) -> tuple[str, ...]:
        """The labels on the page for Prometheus."""
        return tuple(label.replace(".", "_") for label in self.labels)


def _counter(name: str, tells: str, *labels: str) -> Metric:
    return Metric(Kind.COUNTER, name, tells, labels)


def _gauge(name: str, tells: str, *labels: str) -> Metric:
    return Metric(Kind.GAUGE, name, tells, labels)


def _histogram(name: str, tells: str, *labels: str, buckets: tuple[float, ...] = SLOW, unit: str = "") -> Metric:
    return Metric(Kind.HISTOGRAM, name, tells, labels, buckets, unit)


_attributes: dict[str, str] = {}
_spans: dict[str, str] = {}


def _attribute(name: str, tells: str) -> str:
    _attributes[name] = tells
    return name


def _span(name: str, tells: str) -> str:
    _spans[name] = tells
    return name


# --- attributes of spans, and of metrics of the GenAI conventions ---
RPC_SYSTEM = _attribute("rpc.system.name", "`grpc`")
RPC_METHOD = _attribute("rpc.method", "The method in full, `package.Service/Method`")
RPC_STATUS = _attribute("rpc.response.status_code", "The status of a call that was made, as gRPC spells it: `OK`")
HTTP_METHOD = _attribute("http.request.method", "`GET`, `POST` …; `_OTHER` for one that is none of HTTP's")
HTTP_ROUTE = _attribute("http.route", "The template of the path, `/v1/runs/{run_id}`; ours of what came in")
HTTP_STATUS = _attribute("http.response.status_code", "The status answered, to us or by us")
SERVER_ADDRESS = _attribute("server.address", "The host of a provider")
SERVER_PORT = _attribute("server.port", "Its port")
ERROR_TYPE = _attribute("error.type", "The code of the failure (docs/errors), for what did not end well")
GEN_AI_OPERATION = _attribute(
    "gen_ai.operation.name", "`chat`, `embeddings`, `generate_content`; ours where the conventions have no word: `ocr`"
)
GEN_AI_PROVIDER = _attribute("gen_ai.provider.name", "The provider, by the conventions' name or that of our adapter")
GEN_AI_REQUEST_MODEL = _attribute(
    "gen_ai.request.model", "The model asked for: of a provider by the provider's name, of us by the Public Model's"
)
GEN_AI_RESPONSE_MODEL = _attribute("gen_ai.response.model", "The model that the provider says it used")
GEN_AI_OUTPUT_TYPE = _attribute("gen_ai.output.type", "`image`, `speech`, `video`: what is made; not for chats")
GEN_AI_STREAM = _attribute("gen_ai.request.stream", "true where the answer was asked for piece by piece")
GEN_AI_FINISH = _attribute("gen_ai.response.finish_reasons", "Why the model stopped, one entry: `stop`, `length`")
GEN_AI_RESPONSE_ID = _attribute("gen_ai.response.id", "The provider's own id of the exchange")
GEN_AI_FIRST_CHUNK = _attribute("gen_ai.response.time_to_first_chunk", "Seconds from the request to the first piece")
GEN_AI_INPUT_TOKENS = _attribute("gen_ai.usage.input_tokens", "Tokens of the input that the provider reported")
GEN_AI_CACHED_TOKENS = _attribute("gen_ai.usage.cache_read.input_tokens", "Of those, read from the provider's cache")
GEN_AI_OUTPUT_TOKENS = _attribute("gen_ai.usage.output_tokens", "Tokens of the output that the provider reported")
GEN_AI_REASONING_TOKENS = _attribute("gen_ai.usage.reasoning.output_tokens", "Of those, spent on reasoning")
GEN_AI_CONVERSATION = _attribute("gen_ai.conversation.id", "The session of a call, as its caller named it")
GEN_AI_TOKEN_TYPE = _attribute("gen_ai.token.type", "`input` or `output`; of a metric")
OUTCOME = _attribute("pointsman.outcome", "How a served call ended: `ok` or the code of the fault")
CALLER = _attribute("pointsman.caller", "The context that called")
REQUEST_ID = _attribute("pointsman.request_id", "The request at the edge, as in `x-request-id`")
TENANT = _attribute("pointsman.tenant", "Whose request it is")
RUN_ID = _attribute("pointsman.run_id", "The Run")
NODE = _attribute("pointsman.node", "The node of the Run")
ACT = _attribute("pointsman.act", "What is done for it: `hold`, `submit`, `settle` …")
TASK_ID = _attribute("pointsman.task_id", "The Task")
ATTEMPT_ID = _attribute("pointsman.attempt_id", "The Attempt, or the try of a call")
CALL_ID = _attribute("pointsman.call_id", "The synchronous call")
PARENT_CALL_ID = _attribute("pointsman.parent_call_id", "The call that it was made for")
SUPPLY = _attribute("pointsman.supply", "The Supply")
CHANNEL = _attribute("pointsman.channel", "The Channel")
MODEL = _attribute("pointsman.model", "The Public Model")
VERDICT = _attribute("pointsman.verdict", "What a selection came to: `chosen`, `wait`, `fail`")

ATTRIBUTES: Mapping[str, str] = MappingProxyType(_attributes)
"""What each attribute tells."""


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
TASKS_ENDED = _counter("pointsman_tasks_ended_total", "Tasks that came to an end, by state", "model", "state")
TASK_WAIT_SECONDS = _histogram(
    "pointsman_task_wait_seconds", "Time from acceptance of a task to its submission", "kind"
)
SELECTIONS = _counter("pointsman_selections_total", "Selection rounds of tasks, by result", "model", "result", "tier")
SELECTION_SECONDS = _histogram(
    "pointsman_selection_seconds", "Time of the pure selection of one round", "model", buckets=FAST
)
ATTEMPTS_ENDED = _counter("pointsman_attempts_ended_total", "Attempts that came to an end", "supply", "state", "code")
ATTEMPT_SECONDS = _histogram("pointsman_attempt_seconds", "Time from submission of an attempt to its end", "supply")

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

# --- health ---
HEALTH_STATE = _gauge("pointsman_health_state", "1 for the present state", "object_kind", "object", "state")
HEALTH_TRANSITIONS = _counter(
    "pointsman_health_transitions_total", "Changes of state", "object_kind", "object", "from_state", "to_state"
)
HEALTH_OUTCOMES = _counter("pointsman_health_outcomes_total", "Outcomes reported", "object_kind", "object", "result")

# --- cost_quote ---
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

_GEN_AI = (GEN_AI_OPERATION, GEN_AI_PROVIDER, GEN_AI_REQUEST_MODEL)
GEN_AI_DURATION = _histogram(
    "gen_ai.client.operation.duration", "Time of a synchronous call at its provider, one try", *_GEN_AI, ERROR_TYPE,
    buckets=GEN_AI_SECONDS, unit="s",
)  # fmt: skip
GEN_AI_TOKEN_USAGE = _histogram(
    "gen_ai.client.token.usage", "Tokens of a call that its provider reported", *_GEN_AI, GEN_AI_TOKEN_TYPE,
    buckets=GEN_AI_TOKENS, unit="{token}",
)  # fmt: skip
GEN_AI_TIME_TO_FIRST_CHUNK = _histogram(
    "gen_ai.client.operation.time_to_first_chunk", "Time to the first piece of a stream", *_GEN_AI,
    buckets=GEN_AI_SECONDS, unit="s",
)  # fmt: skip

# --- the process ---
TICK_SECONDS = _histogram(
    "pointsman_tick_seconds", "Time of one round of a background loop that went well", "context", "tick"
)
TICK_FAILURES = _counter("pointsman_tick_failures_total", "Rounds of a background loop that failed", "context", "tick")

METRICS: Mapping[str, Metric] = MappingProxyType(
    {value.name: value for value in list(globals().values()) if isinstance(value, Metric)}
)

# --- spans ---
SPAN_RUN_ADVANCE = _span("pointsman.runs.advance", "One act for a node of a Run, in the trace that created the Run")
SPAN_TASK_ADVANCE = _span(
    "pointsman.routing.advance", "One step of a Task, in the trace that handed it over, whichever process takes it up"
)
SPAN_SELECT = _span("pointsman.routing.select", "One selection, with its reservation: from the snapshots to the lease")
SPAN_POLL = _span("pointsman.provider_adapter.poll", "A provider is asked where a job stands, its result fetched")
SPAN_RECONCILE = _span("pointsman.provider_adapter.reconcile", "A provider's records are asked about a submission")
SPAN_CANCEL = _span("pointsman.provider_adapter.cancel", "A provider is asked to stop a job")

SPANS: Mapping[str, str] = MappingProxyType(_spans)
"""What each span of a fixed name covers."""
