"""Ark's codes that general wording would misread or cannot know."""

from services.provider_adapter.domain.table import FaultTable, Row

TABLE = FaultTable(
    provider="ark",
    rows=(
        # the moderation service itself failed: nothing was moderated
        Row("ContentSecurityDetectionError", "provider_error"),
        Row("InputImageSensitiveContentDetected.PrivacyInformation", "real_person_rejected"),
        Row("InputVideoSensitiveContentDetected.PrivacyInformation", "real_person_rejected"),
        Row("OutputImageSensitiveContentDetected.PrivacyInformation", "real_person_rejected"),
        Row("OutputVideoSensitiveContentDetected.PrivacyInformation", "real_person_rejected"),
        Row("AuthenticationError", "key_invalid"),
        Row("InvalidAccountStatus", "account_forbidden"),
        Row("AccountOverdueError", "balance_exhausted"),
        Row("OperationDenied.ServiceOverdue", "balance_exhausted"),
        Row("OperationDenied.ServiceNotOpen", "model_unavailable"),
        Row("OperationDenied.FileQuotaExceeded", "rate_limited"),
        Row("OperationDenied.InvalidState", "invalid_request"),
        Row("AccessDenied", "account_forbidden"),
        # one code for "the free quota of this model is used up" and for "too many tasks are queued or running"
        Row("QuotaExceeded", "model_unavailable", says=r"free trial|quota for the model\b(?!.*try again)"),
        Row("QuotaExceeded", "rate_limited"),
        Row("SetLimitExceeded", "model_unavailable"),
        Row("AccountQuotaExceeded", "rate_limited"),
        Row("InvalidEndpoint.*", "model_unavailable"),
        Row("InvalidEndpointOrModel.*", "model_unavailable"),
        Row("ModelNotOpen", "model_unavailable"),
        Row("UnsupportedModel", "model_unavailable"),
        Row("RateLimitExceeded.*", "rate_limited"),
        Row("RequestBurstTooFast", "rate_limited"),
        Row("ServerOverloaded", "rate_limited"),
        Row("ModelLoadingError", "rate_limited"),
        Row("InvalidImageURL.*", "material_unreachable"),
        Row("InvalidVideoURL.*", "material_unreachable"),
        Row("InvalidAudioURL.*", "material_unreachable"),
        Row("InvalidParameter.OversizedImage", "material_unreachable"),
        Row("InvalidParameter.UnsupportedImageFormat", "material_unreachable"),
        Row("InvalidParameter.*", "invalid_request"),
        Row("InvalidParameter", "invalid_request"),
        Row("MissingParameter*", "invalid_request"),
        Row("InternalServiceError", "provider_error"),
        Row("ResourceNotFound", "task_lost", says=r"\btask\b"),
        Row("NotFound.id", "task_lost"),
        # a task that waited longer than it was allowed to
        Row("expired", "out_of_stock"),
    ),
)
