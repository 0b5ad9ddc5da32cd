"""MiniMax's codes: numbers in `base_resp.status_code`, under a 200 as a rule, and as texts in a task's `error.code`."""

from services.provider_adapter.domain.table import FaultTable, Row

TABLE = FaultTable(
    provider="minimax",
    rows=(
        Row("1000", "provider_error"),
        # their own service gave up waiting: the task may have been made
        Row("1001", "submission_unknown"),
        Row("1002", "rate_limited"),
        Row("1004", "key_invalid"),
        Row("1008", "balance_exhausted"),
        Row("1013", "provider_error"),
        Row("1024", "provider_error"),
        # a likeness is refused under the code of moderation
        Row("1026", "real_person_rejected", says=r"real person|public figure|celebrit|likeness|真人|肖像"),
        Row("1026", "content_rejected"),
        Row("1027", "content_rejected"),
        Row("1028", "balance_exhausted"),
        Row("1033", "provider_error"),
        Row("1039", "rate_limited"),
        Row("1041", "rate_limited"),
        Row("1042", "invalid_request"),
        Row("1043", "invalid_request"),
        # one code for every parameter, also for the id of a task that is no longer kept
        Row("2013", "task_lost", says=r"invalid task_?id"),
        Row("2013", "invalid_request"),
        Row("2039", "invalid_request"),
        Row("2049", "key_invalid"),
        Row("2053", "balance_exhausted"),
        Row("2056", "rate_limited"),
        Row("2061", "model_unavailable"),
        # a task that waited longer than it was allowed to
        Row("expired", "out_of_stock"),
    ),
)
