"""Figures of how well productions go."""

from pointsman.runs.v1 import runs_service_pb2 as pb
from services.edge.domain import level_shapes
from services.edge.wire.values import amount


def report(message: pb.GetServiceLevelsResponse) -> level_shapes.ServiceLevelReport:
    """All of it."""
    levels = [_levels(item) for item in message.levels]
    return level_shapes.ServiceLevelReport(levels, message.checked, message.rebuilt)


def _levels(message: pb.ServiceLevels) -> level_shapes.ServiceLevels:
    def known(name: str) -> float | None:
        return float(getattr(message, name)) if message.HasField(name) else None  # type: ignore[arg-type]  # by name

    costs = [cost for item in message.cost_per_usable_second if (cost := amount(item)) is not None]
    return level_shapes.ServiceLevels(
        model=message.model or None,
        runs=message.runs,
        nodes=message.nodes,
        success_rate=known("success_rate"),
        queue_time_s=known("queue_time_seconds"),
        first_pass_yield=known("first_pass_yield"),
        retry_rate=known("retry_rate"),
        cost_per_usable_second=costs,
        review_wait_s=known("review_wait_seconds"),
        stale_propagation_s=known("stale_propagation_seconds"),
    )
