"""Domain <-> proto for figures of how well productions go, and nothing else."""

from datetime import timedelta
from decimal import Decimal

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.values import money_to_proto, seconds_of
from pointsman.runs.v1 import runs_service_pb2 as pb
from services.runs.app.measure_levels import WATCHED, Levels
from services.runs.domain.service_levels import Figures

EXACT = Decimal("0.000000001")
LONGEST_S = 90 * 86_400
"""What the edge offers: nobody looks further back."""


def window_from_proto(message: pb.GetServiceLevelsRequest) -> timedelta:
    """How far to look back; a day where nothing is said. Fault validation_failed."""
    if not message.HasField("window"):
        return WATCHED
    asked_s = seconds_of(message.window)
    if not 0 < asked_s <= LONGEST_S:
        raise Fault.invalid(("/window", f"must be more than 0 and at most {LONGEST_S} seconds"))
    return timedelta(seconds=asked_s)


def levels_to_proto(levels: Levels) -> pb.GetServiceLevelsResponse:
    """Everything first, then by model."""
    told = [_figures(model, figures) for model, figures in levels.figures.items()]
    return pb.GetServiceLevelsResponse(levels=told, checked=levels.checked, rebuilt=levels.rebuilt)


def _figures(model: str, figures: Figures) -> pb.ServiceLevels:
    costs = figures.cost_per_usable_second.items()
    return pb.ServiceLevels(
        model=model,
        runs=figures.runs,
        nodes=figures.nodes,
        success_rate=figures.success_rate,
        queue_time_seconds=figures.queue_time_s,
        first_pass_yield=figures.first_pass_yield,
        retry_rate=figures.retry_rate,
        cost_per_usable_second=[
            money_to_proto(Money(currency, cost.quantize(EXACT))) for currency, cost in sorted(costs)
        ],
        review_wait_seconds=figures.review_wait_s,
        stale_propagation_seconds=figures.stale_propagation_s,
    )
