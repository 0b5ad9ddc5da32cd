"""The registry of codes: complete, stable, documented."""

from pathlib import Path

import grpc
import pytest

from libs.faults import pages
from libs.faults.fault import Fault
from libs.faults.registry import CODES, Category, Code, Scope

ROOT = Path(__file__).resolve().parents[3]
SNAPSHOT = Path(__file__).with_name("codes.txt")

# EDG-2 as the specification writes it: HTTP statuses of the codes that it names.
STATUSES = {
    400: ["malformed_request"],
    401: ["unauthenticated"],
    402: ["budget_exhausted"],
    403: ["forbidden"],
    404: ["not_found", "model_not_published"],
    405: ["method_not_allowed"],
    409: ["run_terminal", "idempotency_in_progress"],
    413: ["payload_too_large"],
    415: ["unsupported_media_type"],
    422: [
        "validation_failed", "content_rejected", "real_person_rejected", "idempotency_conflict", "cost_limit_exceeded",
    ],
    429: ["quota_exceeded", "capacity_exhausted"],
    500: ["internal", "source_not_configured"],
    502: ["submission_unresolved"],
    503: ["supply_unavailable", "governance_backend_down"],
    504: ["join_timeout", "deadline_exceeded"],
}  # fmt: skip

# ERR: the table of what happened, as (category, scope, retryable).
TABLE = {
    "content_rejected": ("content", "request", False),
    "real_person_rejected": ("content", "request", False),
    "invalid_request": ("request", "request", False),
    "material_unreachable": ("request", "request", False),
    "model_unavailable": ("supply", "supply", True),
    "provider_error": ("supply", "supply", True),
    "malformed_reply": ("supply", "supply", True),
    "rate_limited": ("capacity", "supply", True),
    "out_of_stock": ("capacity", "supply", True),
    "key_invalid": ("supply", "channel", True),
    "balance_exhausted": ("supply", "channel", True),
    "connect_failed": ("supply", "channel", True),
    "submission_unknown": ("unknown", "attempt", False),
}

BY_CATEGORY = {
    Category.CONTENT: "FAILED_PRECONDITION",
    Category.REQUEST: "INVALID_ARGUMENT",
    Category.SUPPLY: "UNAVAILABLE",
    Category.CAPACITY: "RESOURCE_EXHAUSTED",
    Category.UNKNOWN: "ABORTED",
}
# The situations that ERR-2 or gRPC itself name, whatever the category.
NAMED = {
    "unauthenticated": "UNAUTHENTICATED",
    "forbidden": "PERMISSION_DENIED",
    "not_found": "NOT_FOUND",
    "model_not_published": "NOT_FOUND",
    "method_not_allowed": "UNIMPLEMENTED",
    "unimplemented": "UNIMPLEMENTED",
    "range_not_satisfiable": "OUT_OF_RANGE",
    "history_pruned": "OUT_OF_RANGE",
    "idempotency_conflict": "ALREADY_EXISTS",
    "already_exists": "ALREADY_EXISTS",
    "idempotency_in_progress": "ABORTED",
    "conflict": "ABORTED",
    "revision_conflict": "ABORTED",
    "run_terminal": "ABORTED",
    "lease_expired": "ABORTED",
    "lease_not_held": "ABORTED",
    "fenced": "ABORTED",
    "stale_health": "ABORTED",
    "source_not_configured": "FAILED_PRECONDITION",
    "transport_limit": "RESOURCE_EXHAUSTED",
    "join_timeout": "DEADLINE_EXCEEDED",
    "deadline_exceeded": "DEADLINE_EXCEEDED",
    "internal": "INTERNAL",
}


def line(code: Code) -> str:
    """A row as the snapshot keeps it."""
    retry = "yes" if code.retryable else "no"
    return f"{code.name} {code.category}/{code.scope} {retry} {code.grpc_status} {code.http_status}"


def test_no_code_is_renamed_removed_or_changed():
    """ERR-3: what was once published stays; a new code is added to codes.txt by hand."""
    published = {text for text in SNAPSHOT.read_text().splitlines() if text and not text.startswith("#")}
    assert published == {line(code) for code in CODES.values()}


@pytest.mark.parametrize("status", STATUSES)
def test_the_http_status_of_every_named_code(status: int):
    """EDG-2: the codes of the specification have its statuses."""
    assert [CODES[code].http_status for code in STATUSES[status]] == [status] * len(STATUSES[status])


@pytest.mark.parametrize("code", TABLE)
def test_the_table_of_what_happened(code: str):
    """ERR-1: category, scope and retryable of every row of the table."""
    entry = CODES[code]
    assert (entry.category, entry.scope, entry.retryable) == TABLE[code]


def test_the_grpc_status_follows_the_category_unless_the_situation_is_named():
    """ERR-2: canonical codes by category; missing, permission, key, conflict and own bug by name."""
    wrong = {
        code.name: code.grpc_status
        for code in CODES.values()
        if code.grpc_status != NAMED.get(code.name, BY_CATEGORY[code.category])
    }
    assert wrong == {}
    assert all(code.grpc_status in grpc.StatusCode.__members__ for code in CODES.values())


def test_only_faults_of_supply_or_capacity_touch_a_supply_or_channel():
    """HLT-5: content, request and unknown faults have a scope that bears on no health."""
    touching = {code.category for code in CODES.values() if code.scope in (Scope.SUPPLY, Scope.CHANNEL)}
    assert touching == {Category.SUPPLY, Category.CAPACITY}


def test_an_assembly_fault_is_never_retryable_and_no_outage():
    """CAT-6: source_not_configured is not retryable and its category and scope count towards no health."""
    entry = CODES["source_not_configured"]
    assert (entry.retryable, entry.category, entry.scope) == (False, Category.REQUEST, Scope.REQUEST)


def test_every_page_is_as_the_registry_says():
    """ERR-3: every code has a documentation page, and it is not stale (`python -m libs.faults.pages`)."""
    folder = ROOT / "docs" / "errors"
    stale = [name for name, text in pages.pages().items() if (folder / name).read_text() != text]
    assert stale == []
    assert {path.name for path in folder.iterdir()} == set(pages.pages())


def test_a_governance_outage_may_be_retried_after_five_seconds():
    """CAP-12: a capacity backend that does not answer is of the unavailable family, retry after 5 s."""
    fault = Fault.of("governance_backend_down")
    assert (fault.category, fault.retryable, fault.retry_after_ms) == (Category.SUPPLY, True, 5000)
