"""Azure's codes: its own, and OpenAI's where the deployment itself answers."""

from services.provider_adapter.adapters.openai.faults import TABLE as OPENAI
from services.provider_adapter.domain.table import FaultTable, Row

TABLE = FaultTable(
    provider="azure-openai",
    rows=(
        # the filter could not be reached: nothing was filtered
        Row("content_filter_error", "provider_error"),
        Row("ResponsibleAIPolicyViolation", "content_rejected"),
        Row("contentFilter", "content_rejected"),
        Row("content_policy_violation", "content_rejected"),
        Row("DeploymentNotFound", "model_unavailable"),
        Row("DeploymentModelNotSupported", "model_unavailable"),
        Row("OperationNotSupported", "model_unavailable"),
        Row("ModelDeprecated", "model_unavailable"),
        Row("NoCapacity", "rate_limited"),
        Row("RateLimitReached", "rate_limited"),
        Row("TooManyRequests", "rate_limited"),
        Row("429", "rate_limited"),
        Row("insufficient_quota", "balance_exhausted"),
        Row("AccessDenied", "account_forbidden"),
        Row("PermissionDenied", "account_forbidden"),
        Row("AuthenticationTypeDisabled", "key_invalid"),
        Row("ResourceNotFound", "connect_failed"),
        # a subscription key that is none, and a URL that leads elsewhere
        Row("401", "key_invalid"),
        Row("404", "connect_failed", says=r"resource not found"),
        Row("InternalServerError", "provider_error"),
        Row("Timeout", "submission_unknown"),
        Row("RequestTimeout", "submission_unknown"),
        *OPENAI.rows,
    ),
)
