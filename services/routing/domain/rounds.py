"""Selection rounds: a decision with the frozen inputs it was made from, as it is kept for ever (SEL-14, SEL-17)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from libs.kernel.canonical import digest
from services.routing.domain.decision import Decision, Inputs
from services.routing.domain.selection_record import record_text


class RoundOutcome(StrEnum):
    """What became of a round."""

    RESERVED = "reserved"
    REFUSED = "refused"
    """The reservation failed; another round follows with fresh snapshots."""
    WAITING = "waiting"
    FAILED = "failed"


class SelectionRound(Struct, frozen=True):
    """One saved round. `record` is the canonical JSON of `domain.selection_record`, replayable byte for byte."""

    task_id: str
    round: int
    decided_at: datetime
    outcome: RoundOutcome
    record: str
    note: str = ""
    """What a refusal named, for example `supply a/x concurrency 5 of 5`."""


@dataclass(frozen=True, slots=True)
class RoundQuery:
    """Which saved rounds of all Tasks: decided at `since` or later, before `until`."""

    since: datetime
    until: datetime
    model: str = ""
    """Only about this Public Model; empty = all."""
    after: tuple[datetime, str, int] | None = None
    """Only those after this (time, Task id, round) in the order of the answer."""
    count: int = 200


def make_round(
    task_id: str, number: int, inputs: Inputs, decision: Decision, outcome: RoundOutcome, note: str = ""
) -> SelectionRound:
    """Freeze a decision."""
    return SelectionRound(task_id, number, inputs.now, outcome, record_text(inputs, decision), note)


def round_key(decision: Decision) -> str:
    """Equal for decisions that say the same: verdict, and fate, step and reason of every Supply, without figures.

    A Task that waits is decided again every second; a round is saved only when its key differs from the last one.
    """
    fates = sorted((fate.supply, fate.fate, fate.step, fate.reason) for fate in decision.fates)
    return digest([decision.verdict, decision.chosen, decision.failure_code, fates])[:16]
