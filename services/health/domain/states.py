"""The state table of the breaker. The step function obeys it and the diagram in the guide is drawn from it.

Laws of this file:
- a pair (state, signal) that the table does not hold is not a move: nothing happens, or the command is refused;
- the epoch rises only where a circuit opens or an operator switches; late writers are fenced by it (HLT-6);
- streaks and windows are cleared where a new phase begins (a probe, an operator's enable), never in between.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class State(StrEnum):
    """The states of a breaker."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    CIRCUIT_OPEN = "circuit_open"
    PROBING = "probing"
    RECOVERING = "recovering"
    DISABLED = "disabled"


CLOSED = frozenset({State.HEALTHY, State.DEGRADED})
LADDER = frozenset({State.PROBING, State.RECOVERING})
SHUT = frozenset({State.CIRCUIT_OPEN, State.DISABLED})


class Signal(StrEnum):
    """What an observation was judged to mean. The value is the label in the diagram."""

    WORSENED = "failures below the opening threshold"
    EASED = "successes in a row, low rate"
    TRIPPED = "opening threshold reached"
    COOLED = "cooldown over"
    PASSED = "first success"
    CLIMBED = "next success"
    FINISHED = "fifth success"
    FAILED = "any infrastructure failure"
    FORCED_OPEN = "operator opens"
    SWITCHED_OFF = "operator disables"
    SWITCHED_ON = "operator enables"


COMMANDS = frozenset({Signal.FORCED_OPEN, Signal.SWITCHED_OFF, Signal.SWITCHED_ON})


@dataclass(frozen=True, slots=True)
class Move:
    """One row of the table: where a signal leads, the kind of event it writes, and what it renews."""

    to: State
    event: str
    new_epoch: bool = False
    new_phase: bool = False


def _rows() -> dict[tuple[State, Signal], Move]:
    opened = Move(State.CIRCUIT_OPEN, "opened", new_epoch=True)
    reopened = Move(State.CIRCUIT_OPEN, "reopened", new_epoch=True)
    enabled = Move(State.HEALTHY, "enabled", new_epoch=True, new_phase=True)
    disabled = Move(State.DISABLED, "disabled", new_epoch=True)
    return {
        (State.HEALTHY, Signal.WORSENED): Move(State.DEGRADED, "degraded"),
        (State.HEALTHY, Signal.TRIPPED): opened,
        (State.HEALTHY, Signal.FORCED_OPEN): opened,
        (State.HEALTHY, Signal.SWITCHED_OFF): disabled,
        (State.DEGRADED, Signal.EASED): Move(State.HEALTHY, "restored"),
        (State.DEGRADED, Signal.TRIPPED): opened,
        (State.DEGRADED, Signal.FORCED_OPEN): opened,
        (State.DEGRADED, Signal.SWITCHED_OFF): disabled,
        (State.DEGRADED, Signal.SWITCHED_ON): enabled,
        (State.CIRCUIT_OPEN, Signal.COOLED): Move(State.PROBING, "probing", new_phase=True),
        (State.CIRCUIT_OPEN, Signal.FORCED_OPEN): reopened,
        (State.CIRCUIT_OPEN, Signal.SWITCHED_OFF): disabled,
        (State.CIRCUIT_OPEN, Signal.SWITCHED_ON): enabled,
        (State.PROBING, Signal.PASSED): Move(State.PROBING, "step"),
        (State.PROBING, Signal.CLIMBED): Move(State.RECOVERING, "step"),
        (State.PROBING, Signal.FAILED): reopened,
        (State.PROBING, Signal.FORCED_OPEN): reopened,
        (State.PROBING, Signal.SWITCHED_OFF): disabled,
        (State.PROBING, Signal.SWITCHED_ON): enabled,
        (State.RECOVERING, Signal.CLIMBED): Move(State.RECOVERING, "step"),
        (State.RECOVERING, Signal.FINISHED): Move(State.HEALTHY, "recovered"),
        (State.RECOVERING, Signal.FAILED): reopened,
        (State.RECOVERING, Signal.FORCED_OPEN): reopened,
        (State.RECOVERING, Signal.SWITCHED_OFF): disabled,
        (State.RECOVERING, Signal.SWITCHED_ON): enabled,
        (State.DISABLED, Signal.SWITCHED_ON): enabled,
    }


TABLE: Mapping[tuple[State, Signal], Move] = MappingProxyType(_rows())


def diagram() -> str:
    """The table as a Mermaid state diagram. Operators' commands stand in notes: they lead from nearly everywhere."""
    lines = ["stateDiagram-v2", "    [*] --> healthy"]
    for (state, signal), move in TABLE.items():
        if signal not in COMMANDS:
            epoch = ", epoch + 1" if move.new_epoch else ""
            lines.append(f"    {state} --> {move.to}: {signal} ({move.event}{epoch})")
    for command in (signal for signal in Signal if signal in COMMANDS):
        sources = [state for state in State if (state, command) in TABLE]
        to = TABLE[sources[0], command].to
        lines += [f"    note left of {to}", f"        {command}, epoch + 1, from:", f"        {', '.join(sources)}"]
        lines.append("    end note")
    return "\n".join(lines) + "\n"
