"""Vidu's words: `reason` of a refusal, `err_code` of a failed task. The HTTP status alone would mislead in most."""

from services.provider_adapter.domain.table import FaultTable, Row

TABLE = FaultTable(
    provider="vidu",
    rows=(
        Row("TaskPromptPolicyViolation", "content_rejected"),
        Row("AuditSubmitIllegal", "content_rejected"),
        Row("CreationPolicyViolation", "content_rejected"),
        # a template that needs a face found none: the picture does not fit, nobody's likeness is refused
        Row("ImageCheckFaceFailed", "material_unreachable"),
        Row("ImageDownloadFailure", "material_unreachable"),
        # about the size of a picture, whatever the name says
        Row("PageSizeOutOfRange", "material_unreachable"),
        Row("FieldLacking", "invalid_request"),
        Row("FieldUnwanted", "invalid_request"),
        Row("FieldItemCountOutOfRange", "invalid_request"),
        Row("BadRequest", "invalid_request"),
        Row("CreditInsufficient", "balance_exhausted"),
        Row("Unauthorized", "key_invalid"),
        Row("Forbidden", "account_forbidden"),
        Row("ModelUnavailable", "model_unavailable"),
        Row("QuotaExceeded", "rate_limited"),
        Row("SystemThrottling", "rate_limited"),
        Row("TaskNotFound", "task_lost"),
        # the operation is under way, or was before: a second one must not follow the first
        Row("OperationInProcess", "submission_unknown"),
        Row("Conflict", "submission_unknown"),
        Row("Canceled", "submission_unknown"),
        Row("UserCancelled", "invalid_request"),
        Row("InternalServiceFailure", "provider_error"),
    ),
)
