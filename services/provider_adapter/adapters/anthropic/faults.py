"""Anthropic's types of errors. `invalid_request_error` also stands around low credit: there the words decide."""

from services.provider_adapter.domain.table import FaultTable, Row

TABLE = FaultTable(
    provider="anthropic",
    rows=(
        Row("authentication_error", "key_invalid"),
        Row("billing_error", "balance_exhausted"),
        Row("permission_error", "model_unavailable", says=r"\bmodel\b"),
        Row("permission_error", "account_forbidden"),
        Row("not_found_error", "model_unavailable"),
        Row("request_too_large", "invalid_request"),
        Row("rate_limit_error", "rate_limited"),
        Row("overloaded_error", "rate_limited"),
        Row("api_error", "provider_error"),
        # the call may have run to its end behind the clock that gave it up
        Row("timeout_error", "submission_unknown"),
        Row("conflict_error", "submission_unknown"),
        Row("refusal", "content_rejected"),
    ),
)
