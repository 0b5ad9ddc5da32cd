"""Replicate's codes. They stand within the error's text, in brackets or before a colon, beside the state `failed`.

Those of the platform itself (E1000, E1001, E8765, E9828, PA) need no line: a failure without a better reason is the
supply's.
"""

from services.provider_adapter.domain.table import FaultTable, Row

TABLE = FaultTable(
    provider="replicate",
    rows=(
        Row("failed", "content_rejected", says=r"\bE005\b"),
        Row("failed", "out_of_stock", says=r"\bE6716\b"),
        Row("failed", "material_unreachable", says=r"HTTPSConnectionPool|Max retries exceeded with url"),
        Row("aborted", "out_of_stock"),
    ),
)
