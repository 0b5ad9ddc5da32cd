"""The way back: how many slots a breaker allows, and what the next success is worth (HLT-2, HLT-3)."""

from collections.abc import Mapping
from types import MappingProxyType

from services.health.domain.states import Signal, State

# What the n-th consecutive success since probing began means.
RUNGS: Mapping[int, Signal] = MappingProxyType(
    {1: Signal.PASSED, 2: Signal.CLIMBED, 3: Signal.CLIMBED, 4: Signal.CLIMBED, 5: Signal.FINISHED}
)

# Quarters of the configured slots after n successes.
QUARTERS: Mapping[int, int] = MappingProxyType({2: 1, 3: 2, 4: 3})

# A subject without a concurrency gate has no number to take a quarter of; it returns as if it had this many slots.
UNLIMITED_AS = 8


def allowed_slots(state: State, recovery_successes: int, configured: int) -> int | None:
    """Slots that health allows; None = no limit by health. `configured` 0 means no concurrency gate.

    HLT-3: fractions round up, yet with more than one slot recovering leaves at least one closed; one slot stays one.
    """
    if state in (State.HEALTHY, State.DEGRADED):
        return None
    if state is State.PROBING:
        return 1
    if state is not State.RECOVERING:
        return 0
    slots = configured or UNLIMITED_AS
    if slots == 1:
        return 1
    return min(slots - 1, -(-slots * QUARTERS[recovery_successes] // 4))
