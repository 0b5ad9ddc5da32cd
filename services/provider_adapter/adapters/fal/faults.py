"""fal's error types that general wording would misread or cannot know.

Models answer `detail: [{loc, msg, type}]`, the queue `{detail: "…", error_type}`, with the type in a header as well.
Both shapes are read by `domain/reading`, and their types are plain words.
"""

from dataclasses import replace

from services.provider_adapter.adapters.fal.manifest import ERROR_HEADER, STOPPED
from services.provider_adapter.domain.table import FaultTable, Row

TABLE = FaultTable(
    provider="fal",
    headers=(ERROR_HEADER,),
    # the address of the result answers with what became of the request
    errors_of_polls_judge=True,
    rows=(Row(STOPPED, "cancelled"),),
)

QUESTIONS = replace(TABLE, errors_of_polls_judge=False)
"""For the addresses of status and cancellation, whose errors are about the question alone."""
