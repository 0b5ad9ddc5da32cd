"""Google's words: the status and the reason of google.rpc.Status, reasons why an answer ended, codes of operations.

`INVALID_ARGUMENT` and `FAILED_PRECONDITION` also stand around keys and regions: there the reason and the words decide.
"""

from services.provider_adapter.domain.table import FaultTable, Row

TABLE = FaultTable(
    provider="google",
    rows=(
        Row("API_KEY_INVALID", "key_invalid"),
        Row("API_KEY_SERVICE_BLOCKED", "account_forbidden"),
        Row("SERVICE_DISABLED", "account_forbidden"),
        Row("CONSUMER_SUSPENDED", "account_forbidden"),
        Row("BILLING_DISABLED", "balance_exhausted"),
        Row("UNAUTHENTICATED", "key_invalid"),
        # a prepaid account that is empty says "exhausted" as a full quota does, with another status
        Row("RESOURCE_EXHAUSTED", "balance_exhausted", status=402),
        Row("RESOURCE_EXHAUSTED", "balance_exhausted", says=r"prepayment|credits? (are|is) depleted"),
        Row("RESOURCE_EXHAUSTED", "model_unavailable", says=r"limit: 0\b"),
        Row("RESOURCE_EXHAUSTED", "rate_limited"),
        Row("UNAVAILABLE", "rate_limited", says=r"overloaded|high demand|try again later"),
        Row("UNAVAILABLE", "provider_error"),
        Row("DEADLINE_EXCEEDED", "submission_unknown"),
        Row("CANCELLED", "submission_unknown"),
        Row("INTERNAL", "provider_error"),
        # reasons why a prompt was blocked or an answer ended
        Row("SAFETY", "content_rejected"),
        Row("PROHIBITED_CONTENT", "content_rejected"),
        Row("BLOCKLIST", "content_rejected"),
        Row("RECITATION", "content_rejected"),
        Row("SPII", "content_rejected"),
        Row("JAILBREAK", "content_rejected"),
        Row("MODEL_ARMOR", "content_rejected"),
        Row("IMAGE_*", "content_rejected"),
        Row("LANGUAGE", "invalid_request"),
        Row("MALFORMED_FUNCTION_CALL", "malformed_reply"),
        Row("MALFORMED_RESPONSE", "malformed_reply"),
        Row("UNEXPECTED_TOOL_CALL", "malformed_reply"),
        Row("TOO_MANY_TOOL_CALLS", "malformed_reply"),
        Row("MISSING_THOUGHT_SIGNATURE", "invalid_request"),
        Row("NO_IMAGE", "provider_error"),
    ),
)
