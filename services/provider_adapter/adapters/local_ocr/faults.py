"""The codes of a reading server."""

from services.provider_adapter.domain.table import FaultTable, Row

TABLE = FaultTable(
    provider="local-ocr",
    rows=(
        Row("invalid_api_key", "key_invalid"),
        Row("model_not_found", "model_unavailable"),
        Row("missing_parameter", "invalid_request"),
        Row("invalid_value", "invalid_request"),
        Row("invalid_json", "invalid_request"),
        Row("invalid_image", "material_unreachable"),
        Row("image_unreachable", "material_unreachable"),
        Row("content_rejected", "content_rejected"),
        Row("rate_limit_exceeded", "rate_limited"),
        Row("unavailable", "provider_error"),
        Row("internal_error", "provider_error"),
        Row("conflict", "submission_unknown"),
        Row("route_unknown", "connect_failed"),
    ),
)
