"""OpenAI's codes that general wording would misread or cannot know. `code` is asked before `type`."""

from services.provider_adapter.domain.table import FaultTable, Row

TABLE = FaultTable(
    provider="openai",
    rows=(
        # one code for "wait a little" and for "this request alone is larger than the whole window"
        Row("rate_limit_exceeded", "invalid_request", says=r"request too large"),
        Row("rate_limit_exceeded", "rate_limited"),
        Row("slow_down", "rate_limited"),
        Row("insufficient_quota", "balance_exhausted"),
        Row("credit_balance_exhausted", "balance_exhausted"),
        Row("billing_hard_limit_reached", "balance_exhausted"),
        Row("billing_not_active", "balance_exhausted"),
        Row("invalid_api_key", "key_invalid"),
        Row("account_deactivated", "account_forbidden"),
        Row("unsupported_country_region_territory", "account_forbidden"),
        Row("model_not_found", "model_unavailable"),
        Row("moderation_blocked", "content_rejected"),
        Row("content_policy_violation", "content_rejected"),
        Row("content_filter", "content_rejected"),
        Row("invalid_prompt", "content_rejected"),
        Row("context_length_exceeded", "invalid_request"),
        Row("string_above_max_length", "invalid_request"),
        Row("unsupported_parameter", "invalid_request"),
        Row("unsupported_value", "invalid_request"),
        Row("unsupported_content_type", "invalid_request"),
        Row("invalid_value", "invalid_request"),
        Row("missing_required_parameter", "invalid_request"),
        Row("invalid_image_url", "material_unreachable"),
        Row("invalid_image_file", "material_unreachable"),
        Row("image_parse_error", "material_unreachable"),
        Row("image_generation_failed", "provider_error"),
        Row("conflict", "submission_unknown"),
        Row("unknown_url", "connect_failed"),
    ),
)
