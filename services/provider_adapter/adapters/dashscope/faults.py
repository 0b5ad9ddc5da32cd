"""DashScope's codes that general wording would misread.

The others are plain words, also where they contradict their HTTP status (`Arrearage` is a 400, a bill overdue a 429).
"""

from services.provider_adapter.domain.table import FaultTable, Row

TABLE = FaultTable(
    provider="dashscope",
    rows=(
        # the header that asks for a task was missing
        Row("AccessDenied", "invalid_request", says=r"does not support (a)?synchronous calls"),
        Row("AccessDenied", "model_unavailable"),
    ),
)
