"""Supplies that a round dropped for health, and whose health it was: asked of the saved inputs alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.routing.domain.availability import unhealthy
from services.routing.domain.decision import CapacityView, HealthView, Inputs
from services.routing.domain.rounds import SelectionRound
from services.routing.domain.selection_record import recorded_decision, recorded_inputs

HEALTH_STEP = "SEL-8"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One dropped Supply. `sort` and `name` say whose health decided: the `channel`'s or the `supply`'s."""

    round: int
    decided_at: datetime
    supply: str
    sort: str
    name: str
    view: HealthView


@dataclass(frozen=True, slots=True)
class HealthCause:
    """The event of a subject's history that brought it into a state, in health's words."""

    sequence: int
    kind: str
    reason: str
    attempt_id: str
    at: datetime
    cooldown_until: datetime | None = None


def refusals(rounds: Sequence[SelectionRound]) -> tuple[Refusal, ...]:
    """Of all rounds, in their order."""
    found: list[Refusal] = []
    for item in rounds:
        inputs = recorded_inputs(item.record)
        dropped = [fate.supply for fate in recorded_decision(item.record).fates if fate.step == HEALTH_STEP]
        found += [_refusal(item, inputs, supply) for supply in dropped]
    return tuple(found)


def _refusal(item: SelectionRound, inputs: Inputs, supply: str) -> Refusal:
    """The Channel is asked before the Supply, as the decision did."""
    channel = inputs.supplies[supply].channel
    of_channel = inputs.channel_health.get(channel, HealthView())
    if unhealthy(channel, of_channel, inputs.channel_capacity.get(channel, CapacityView())) is not None:
        return Refusal(item.round, item.decided_at, supply, "channel", channel, of_channel)
    of_supply = inputs.supply_health.get(supply, HealthView())
    return Refusal(item.round, item.decided_at, supply, "supply", supply, of_supply)
