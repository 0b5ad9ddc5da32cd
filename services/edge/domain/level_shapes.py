"""The public JSON shapes of figures of how well productions go."""

from msgspec import Struct

from services.edge.domain.shapes import Amount


class ServiceLevels(Struct, frozen=True):
    """Of one model, or of everything (null). Ratios are between 0 and 1, times means in seconds; null = not known."""

    model: str | None
    runs: int
    nodes: int
    success_rate: float | None
    queue_time_s: float | None
    first_pass_yield: float | None
    retry_rate: float | None
    cost_per_usable_second: list[Amount]
    review_wait_s: float | None
    stale_propagation_s: float | None


class ServiceLevelReport(Struct, frozen=True):
    """Everything first, then by model. Of the newest ended Runs, `checked` were rebuilt from their events, and
    `rebuilt` of them are as they stand."""

    levels: list[ServiceLevels]
    checked: int
    rebuilt: int
