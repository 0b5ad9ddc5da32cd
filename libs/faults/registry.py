"""Every code that a fault may carry. The one list: gRPC reasons, HTTP problems and stored Failures all name from here.

Laws of this file (ERR-3, EDG-2):
- a code, once here, is never renamed or removed and never changes its statuses; tests compare with a snapshot;
- the gRPC status follows the category (content FAILED_PRECONDITION, request INVALID_ARGUMENT, supply UNAVAILABLE,
  capacity RESOURCE_EXHAUSTED, unknown ABORTED) unless ERR-2 names the situation itself (missing, permission, key,
  conflict, own bug) or gRPC does (deadline, unimplemented, out of range);
- every code has a page, docs/errors/<code>.md, written from the entry below by `python -m libs.faults.pages`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Self


class Category(StrEnum):
    """Whose fault it is."""

    CONTENT = "content"
    REQUEST = "request"
    SUPPLY = "supply"
    CAPACITY = "capacity"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, text: str) -> Self:
        """The category of that name; `unknown` for a name from a later release."""
        return cls(text) if text in cls._value2member_map_ else cls("unknown")


class Scope(StrEnum):
    """What it touches. Only `supply` and `channel` can bear on health."""

    REQUEST = "request"
    SUPPLY = "supply"
    CHANNEL = "channel"
    ATTEMPT = "attempt"

    @classmethod
    def of(cls, text: str) -> Self:
        """The scope of that name; `request`, which touches nothing else, for a name from a later release."""
        return cls(text) if text in cls._value2member_map_ else cls("request")


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the registry.

    `grpc_status` is the name of a canonical gRPC code. `does` says what a caller should do about it. `source` names
    the rules of the specification that ask for it.
    """

    name: str
    category: Category
    scope: Scope
    retryable: bool
    grpc_status: str
    http_status: int
    title: str
    does: str
    example: str
    source: str
    retry_after_ms: int | None = None


def type_uri(code: str) -> str:
    """The `type` of a problem (RFC 9457) with this code."""
    return f"urn:pointsman:error:{code}"


_STATUS_OF_CATEGORY = {
    Category.CONTENT: "FAILED_PRECONDITION",
    Category.REQUEST: "INVALID_ARGUMENT",
    Category.SUPPLY: "UNAVAILABLE",
    Category.CAPACITY: "RESOURCE_EXHAUSTED",
    Category.UNKNOWN: "ABORTED",
}

NO, YES = False, True
_ROWS: list[Code] = []


def _code(
    name: str,
    kind: str,
    retryable: bool,
    http_status: int,
    title: str,
    does: str,
    example: str,
    source: str,
    grpc_status: str = "",
    retry_after_ms: int | None = None,
) -> None:
    """Add a row; `kind` is "category/scope", and an empty `grpc_status` follows the category."""
    category, _, scope = kind.partition("/")
    status = grpc_status or _STATUS_OF_CATEGORY[Category(category)]
    _ROWS.append(
        Code(
            name, Category(category), Scope(scope), retryable, status, http_status, title, does, example, source,
            retry_after_ms,
        )
    )  # fmt: skip


# A table: one row is two to four lines, whatever its words.
# fmt: off
# --- The request itself -----------------------------------------------------------------------------------------------
_code("malformed_request", "request/request", NO, 400, "The request cannot be read",
      "Correct the syntax: JSON, encoding, cursor or message bytes.",
      "the body is not JSON: line 3, column 7", "EDG-2 EDG-3 SSE-5")
_code("validation_failed", "request/request", NO, 422, "A field of the request is not acceptable",
      "Correct the fields named in `errors` and send again.",
      "/input/duration_s must be between 4 and 15", "EDG-1 EDG-2 SEL-2")
_code("unauthenticated", "request/request", NO, 401, "No valid key was given",
      "Send `Authorization: Bearer KEY` with a key that is neither expired nor revoked.",
      "the key was revoked", "EDG-2 AUTH-1", "UNAUTHENTICATED")
_code("forbidden", "request/request", NO, 403, "This key may not do that",
      "Use a key with the scope, or of the tenant, that the message names.",
      "the key lacks the scope 'operate'", "EDG-2 AUTH-1 SEL-1", "PERMISSION_DENIED")
_code("not_found", "request/request", NO, 404, "There is no such thing, or it belongs to another tenant",
      "Check the id. A foreign id is answered in the same words as a missing one.",
      "run '01J8Z3M4' does not exist", "EDG-2 AUTH-1", "NOT_FOUND")
_code("model_not_published", "request/request", NO, 404, "The model does not exist or is not published",
      "Choose a model from `GET /v1/models`, or ask an operator to publish this one.",
      "model 'seedance-2.0-933' is not published", "EDG-2 CAT-3", "NOT_FOUND")
_code("method_not_allowed", "request/request", NO, 405, "This path does not know that method",
      "Use a method named in the `Allow` header.", "PUT is not allowed on /v1/runs", "EDG-2 EDG-3", "UNIMPLEMENTED")
_code("payload_too_large", "request/request", NO, 413, "The body is larger than the server accepts",
      "Send less, or give large materials by URL or as an artifact.",
      "the body has 21000000 bytes, 16777216 are accepted", "EDG-2 EDG-3")
_code("unsupported_media_type", "request/request", NO, 415, "The media type of the body is not understood",
      "Send `Content-Type: application/json`, or the type that the path documents.",
      "text/xml is not understood here", "EDG-2 EDG-3")
_code("range_not_satisfiable", "request/request", NO, 416, "The range lies outside the artifact",
      "Ask for a range within the size named in `Content-Range`.",
      "bytes 900-1000 of 512", "EDG-3", "OUT_OF_RANGE")
_code("history_pruned", "request/request", NO, 410, "The history before this cursor is no longer kept",
      "Start again from the `earliest` sequence that the answer names.",
      "events before 120 are pruned", "SSE-5", "OUT_OF_RANGE")
_code("deadline_required", "request/request", NO, 400, "The call carries no deadline",
      "Set a timeout on the call; every call between contexts has one.",
      "/pointsman.health.v1.HealthService/GetSnapshot was called without a deadline", "OPS-4")
_code("unimplemented", "request/request", NO, 501, "The peer does not know this method",
      "Bring both sides to the same release.", "unknown method Hold", "OPS-7", "UNIMPLEMENTED")
_code("url_not_allowed", "request/request", NO, 422, "The URL leads to an address that is not allowed",
      "Give a public http(s) address, or send the material as an artifact.",
      "materials may not be read from private addresses", "AUTH-4")

# --- Idempotency and conflict -----------------------------------------------------------------------------------------
_code("idempotency_conflict", "request/request", NO, 422, "The key was used with another body",
      "Use a new Idempotency-Key for a new request.",
      "key 'order-17' was first used with another body", "EDG-2 IDEM-1", "ALREADY_EXISTS")
_code("idempotency_in_progress", "request/request", YES, 409, "A request with this key is still in flight",
      "Wait as `Retry-After` says and send the same request again.",
      "key 'order-17' is in flight", "EDG-2 IDEM-1", "ABORTED", 1000)
_code("conflict", "request/request", NO, 409, "The state of the object does not allow this",
      "Read the object again and decide anew.", "attempt 2 is already resolved", "ERR-2", "ABORTED")
_code("already_exists", "request/request", NO, 409, "An object with this id exists and differs",
      "Choose another id, or read the one that exists.", "budget 'ep-1' exists", "ERR-2", "ALREADY_EXISTS")
_code("revision_conflict", "request/request", YES, 409, "Someone else changed the object in between",
      "Read the newest revision and apply the change to it.", "expected revision 6, found 7", "CAT-2 ERR-2", "ABORTED")
_code("run_terminal", "request/request", NO, 409, "The run has ended and cannot change any more",
      "Create a new run.", "run '01J8Z3M4' has succeeded", "EDG-2", "ABORTED")
_code("lease_expired", "request/attempt", NO, 409, "The lease has ended and cannot be renewed",
      "Reserve anew, under a new lease id.", "lease 'l-7' expired 4 s ago", "CAP-2", "ABORTED")
_code("lease_not_held", "request/attempt", NO, 409, "The lease belongs to another holder, or was released",
      "Only the holder renews or releases a lease.", "lease 'l-7' is held by routing-2", "CAP-2", "ABORTED")
_code("fenced", "request/attempt", NO, 409, "A newer worker owns this work",
      "Drop the work: its new owner goes on with it.", "attempt epoch 3, the write carried 2", "ATT-7", "ABORTED")
_code("stale_health", "request/attempt", YES, 409, "The reservation was decided on health that has changed",
      "Take a new snapshot and select again.", "supply 'a/seedance': revision 9, the request had 8", "CAP-4 HLT-6",
      "ABORTED")

# --- Catalogue --------------------------------------------------------------------------------------------------------
_code("catalog_invalid", "request/request", NO, 422, "The catalogue file has faults; nothing was changed",
      "Correct every path named in `errors` and apply again.",
      "models[2].bindings[0].supply: no supply 'x'", "CAT-1")
_code("catalog_not_publishable", "request/request", NO, 422, "The model does not pass the publish gate",
      "Remove every reason named in `errors` and publish again.",
      "supply 'a/seedance' has no price rule", "CAT-3 CAT-7")
_code("source_not_configured", "request/request", NO, 500, "Something that the configuration names is not there",
      "An operator corrects the configuration; trying again does not help.",
      "secret env:ARK_API_KEY is not set", "CAT-6 EDG-2", "FAILED_PRECONDITION")

# --- Content ----------------------------------------------------------------------------------------------------------
_code("content_rejected", "content/request", NO, 422, "Moderation refused the prompt or the result",
      "Change the content. No other supply is tried.", "the provider's moderation refused the prompt",
      "EDG-2 ERR SYN-2")
_code("real_person_rejected", "content/request", NO, 422, "No supply may show real people in this way",
      "Remove the real person, or choose a model whose supplies admit one.",
      "the reference image shows a real person", "EDG-2 ERR SEL-6")

_code("check_failed", "content/request", NO, 422, "What was made does not pass its checks",
      "Redrive the node with another input. It is paid and is not made again unchanged.",
      "min_size: 3f2a0c9d11e4 is 640x360, at least 1280x720 is wanted", "GATE-1 RUN-4")
_code("rejected_by_review", "content/request", NO, 422, "A person rejected what was made",
      "Read the comment, then redrive with what it asks for.", "reject by ann: the coat changes its colour",
      "HUMAN-2 GATE-1")
_code("fan_out_stopped", "request/request", NO, 422, "More items of a map failed than it tolerates",
      "Read the errors of its items, mend their cause, and redrive the map. The category is that of the last error.",
      "the fan-out stopped: 3 items failed, 2 are tolerated", "GATE-3")
_code("dependency_missing", "request/request", NO, 422, "What the node needs ended without a result",
      "Mend and redrive the node that the message names: this one begins with it.",
      "needs film, which will not be there: content_rejected: the provider refused the prompt", "DLQ-1")

# --- Providers: the request -------------------------------------------------------------------------------------------
_code("invalid_request", "request/request", NO, 422, "The provider refused a parameter",
      "Correct the parameter named in the message.", "duration must be 5 or 10", "ERR")
_code("material_unreachable", "request/request", NO, 422, "An input material is broken or cannot be fetched",
      "Check that the material opens and is of an accepted type and size.",
      "reference_images[1] answered 404", "ERR AUTH-4")

# --- Providers: the supply --------------------------------------------------------------------------------------------
_code("model_unavailable", "supply/supply", YES, 503, "The provider does not offer this model any more",
      "Nothing: another supply is tried. An operator checks the binding.",
      "the endpoint is not activated", "ERR HLT-8")
_code("provider_error", "supply/supply", YES, 502, "The provider failed",
      "Try again later; another supply is tried by itself.", "the provider answered 500", "ERR HLT-8")
_code("provider_timeout", "supply/supply", YES, 504, "The provider did not answer in time",
      "Try again later; another supply is tried by itself.", "no answer to a poll within 10 s", "ERR HLT-8")
_code("malformed_reply", "supply/supply", YES, 502, "The provider's answer cannot be understood",
      "Try again later; another supply is tried by itself.", "a poll answered HTML", "ERR")
_code("task_lost", "supply/supply", YES, 502, "The provider no longer knows the task it accepted",
      "Nothing: another attempt is made where the policy allows.", "task 'cgt-17' is not known", "ERR ATT-6")
_code("poll_failed", "unknown/attempt", NO, 502, "The provider did not tell where the job stands",
      "Nothing: it is asked again. The job itself is not touched.", "no answer to a poll within 10 s", "ERR HLT-13")
_code("key_invalid", "supply/channel", YES, 502, "The provider refused our account's key",
      "Nothing: another channel is tried. An operator replaces the secret.", "401 from ark-main", "ERR HLT-8")
_code("account_forbidden", "supply/channel", YES, 502, "Our account may not use the provider from here",
      "Nothing: another channel is tried. An operator checks region and contract.",
      "the region is not supported", "ERR ERR-1 HLT-8")
_code("balance_exhausted", "supply/channel", YES, 502, "Our account at the provider is out of money",
      "Nothing: another channel is tried. An operator tops up the account.", "insufficient balance", "ERR HLT-8")
_code("connect_failed", "supply/channel", YES, 502, "The provider cannot be reached",
      "Nothing: another channel is tried.", "TLS handshake with api.example.com failed", "ERR HLT-8")
_code("supply_unavailable", "supply/supply", YES, 503, "No supply of this model can serve now",
      "Wait as `Retry-After` says, or choose another model.",
      "all supplies of 'seedance-2.0-933' are closed by health", "EDG-2 TIER-1a")
_code("no_candidates", "supply/request", YES, 503, "Selection left no candidate",
      "Read the selection of the task: every supply is named with the step that dropped it.",
      "3 supplies dropped: 2 at SEL-5, 1 at SEL-11", "SEL-16 TIER-1")
_code("retry_exhausted", "supply/request", YES, 502, "Every permitted try of the call has failed",
      "Wait as `Retry-After` says and send it again. `errors` names each supply with its failure.",
      "3 of 3 tries failed: a/chat: the provider answered 500", "SYN-3 SYN-6")
_code("stalled", "supply/request", YES, 503, "The call waited longer than its stall window while nothing succeeded",
      "Wait as `Retry-After` says and send it again. `errors` names each supply with its reason.",
      "stalled for 300 s of 300 s, no success in the model's scope since 17:03:20", "SYN-5 SYN-6", "", 30_000)
_code("circuit_open_all", "supply/request", YES, 503, "The circuit of every supply of the model is open",
      "Wait as `Retry-After` says; supplies come back by themselves.",
      "a/chat: circuit open until 17:04:20", "SYN-6 HLT-5")
_code("no_sources", "supply/request", YES, 503, "No supply of the model can serve this request",
      "Read the call: every supply is named with the step that dropped it.",
      "2 supplies dropped: 1 at SEL-4, 1 at SEL-5", "SYN-6 SEL-16")
_code("stream_interrupted", "unknown/attempt", NO, 502, "The provider's stream broke off after it had begun",
      "Keep what came, or send the call again; what was made may have been charged.",
      "the stream ended without its last event after 12 pieces", "SYN-8")

# --- Capacity ---------------------------------------------------------------------------------------------------------
_code("rate_limited", "capacity/supply", YES, 429, "The provider limits our rate or concurrency",
      "Nothing: the call is paced or another supply is tried.", "429 from ark-main, retry after 2 s", "ERR CAP-7 HLT-8")
_code("out_of_stock", "capacity/supply", YES, 503, "The provider has no machine free for this model",
      "Nothing: another supply is tried, or the task waits.", "the model is sold out", "ERR HLT-8")
_code("capacity_exhausted", "capacity/supply", YES, 429, "Every permitted slot or rate window is in use",
      "Wait as `Retry-After` says. The gate that binds is named.",
      "supply 'a/seedance' uses 5 of 5 slots", "CAP-1 EDG-2 SYN-2")
_code("quota_exceeded", "capacity/request", YES, 429, "The tenant's quota is used up",
      "Wait as `Retry-After` says, or ask for a larger quota.",
      "600 of 600 requests this minute", "AUTH-2 EDG-2")
_code("quota_full", "capacity/request", YES, 429, "Every supply of the model is at its limit",
      "Wait as `Retry-After` says. `errors` names each supply with the gate that binds.",
      "2 supplies are full: a/chat: rpm 60 of 60", "SYN-2 SYN-4 SYN-6")
_code("overloaded", "capacity/request", YES, 503, "This process serves as many calls as it may",
      "Wait and try again with backoff.", "1000 calls are in flight", "OPS-4", "", 1000)
_code("transport_limit", "request/request", NO, 500, "The transport refused the message or the call",
      "An operator compares the message limits of both sides; large media travels as digests.",
      "received message larger than max (5242880 vs. 4194304)", "ERR-2 OPS-4", "RESOURCE_EXHAUSTED")

# --- Money ------------------------------------------------------------------------------------------------------------
_code("cost_limit_exceeded", "request/request", NO, 422, "Every possible supply costs more than the policy admits",
      "Ask for less, or for a policy with a higher limit.",
      "the cheapest quote is 60.00 CNY, the limit 50.00 CNY", "COST-6 COST-7 EDG-2")
_code("budget_exhausted", "capacity/request", NO, 402, "The budget does not cover this",
      "Raise the budget or stop.", "episode: 198.00 of 200.00 CNY are spent or held", "COST-10 EDG-2")

# --- Our own machinery ------------------------------------------------------------------------------------------------
_code("governance_backend_down", "supply/request", YES, 503,
      "The store of capacity does not answer; nobody is admitted",
      "Wait as `Retry-After` says.", "PostgreSQL does not answer", "CAP-12 EDG-2", "", 5000)
_code("peer_unavailable", "supply/request", YES, 503, "Another part of Pointsman cannot be reached",
      "Wait and try again. Whether the call had begun is not known.", "health cannot be reached", "OPS-2 ERR-2", "",
      1000)
_code("join_timeout", "request/request", YES, 504, "The run has not finished within the time asked for",
      "Join again: nothing is lost.", "the run is still running after 30 s", "EDG-2", "DEADLINE_EXCEEDED")
_code("deadline_exceeded", "unknown/request", NO, 504, "The time for this call ran out before its outcome was known",
      "Read the state first; repeat a create only with the same Idempotency-Key.",
      "no answer within 10 s", "EDG-2 OPS-4", "DEADLINE_EXCEEDED")
_code("cancelled", "unknown/request", NO, 503, "The call was given up before it ended",
      "Read the state first; repeat a create only with the same Idempotency-Key.",
      "the server gave up the call while stopping", "ERR-2 OPS-4")
_code("submission_unknown", "unknown/attempt", NO, 502, "The provider may or may not have accepted the job",
      "Nothing: the attempt is reconciled before another may start.",
      "the connection broke after the body was sent", "ERR ERR-1a ATT-6")
_code("submission_unresolved", "unknown/attempt", NO, 502, "It could not be found out whether the job was accepted",
      "An operator resolves the attempt: `pointsman attempt resolve`.",
      "not resolved within 1800 s", "ATT-6 EDG-2")
_code("internal", "unknown/request", NO, 500, "Pointsman has a bug",
      "Report the reference id; the log has the rest.", "reference 01J8Z3M4X0", "EDG-2 ERR-2", "INTERNAL")
# fmt: on

CODES: Mapping[str, Code] = MappingProxyType({row.name: row for row in _ROWS})
assert len(CODES) == len(_ROWS), "two rows of the registry have the same code"
