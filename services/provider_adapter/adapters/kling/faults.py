"""Kling's codes. They are numbers, so general wording cannot know any of them; 429 alone means three things here."""

from services.provider_adapter.domain.table import FaultTable, Row

NO_SUCH = ("1202", "1203")
"""There is no such model, or, to a question, no such task."""

TABLE = FaultTable(
    provider="kling",
    rows=(
        Row("1000", "key_invalid"),
        Row("1001", "key_invalid"),
        Row("1002", "key_invalid"),
        Row("1003", "key_invalid"),
        Row("1004", "key_invalid"),
        Row("1100", "account_forbidden"),
        Row("1101", "balance_exhausted"),
        Row("1102", "balance_exhausted"),
        Row("1103", "model_unavailable"),
        Row("1200", "invalid_request"),
        # our own token, of a task that is there: an earlier request was taken
        Row("1201", "submission_unknown", says=r"external_(task_)?id\b.*(duplicat|exist|repeat)"),
        Row("1201", "invalid_request"),
        Row("1202", "model_unavailable"),
        Row("1203", "model_unavailable"),
        Row("1300", "content_rejected"),
        Row("1301", "content_rejected"),
        Row("1302", "rate_limited"),
        Row("1303", "rate_limited"),
        Row("1304", "account_forbidden"),
        Row("5000", "provider_error"),
        Row("5001", "provider_error"),
        # a gateway gave up on a backlog: the task may have been made
        Row("5002", "submission_unknown"),
    ),
)
