"""The public JSON shapes of replays and of what would have been. The laws of `shapes` hold here too."""

from datetime import datetime

from msgspec import Struct

from services.edge.domain.shapes import Amount


class ReplayDifference(Struct, frozen=True):
    """The first place where two decisions differ: a JSON pointer, and both values as JSON (null = nothing there)."""

    pointer: str
    recorded: str | None
    replayed: str | None


class ReplayedRound(Struct, frozen=True):
    """One selection round decided again. `difference` is null where it came out byte for byte."""

    round: int
    identical: bool
    difference: ReplayDifference | None
    decision_digest: str
    decided_at: datetime | None


class Replay(Struct, frozen=True):
    """Every round of a Task; `identical` when all of them are."""

    task_id: str
    identical: bool
    rounds: list[ReplayedRound]


class CallReplay(Struct, frozen=True):
    """The same of a synchronous call."""

    call_id: str
    identical: bool
    rounds: list[ReplayedRound]


class DecisionTotals(Struct, frozen=True):
    """What a set of decisions comes to; every figure is a sum. One `expected_cost` for each currency."""

    chosen: int
    waiting: int
    failed: int
    expected_cost: list[Amount]
    expected_successes: float


class BeforeAfter(Struct, frozen=True):
    """The same decisions as they were and as they would have been."""

    before: DecisionTotals
    after: DecisionTotals


class ChoiceMove(Struct, frozen=True):
    """How often one choice would have become another; `(waits)` and `(fails)` stand for no Supply."""

    model: str
    from_choice: str
    to_choice: str
    count: int


class WhatIfExample(Struct, frozen=True):
    """One decision that would have been another."""

    task_id: str
    round: int
    model: str
    from_choice: str
    to_choice: str
    quote_before: Amount | None
    quote_after: Amount | None
    reason: str


class WhatIf(Struct, frozen=True):
    """One page of an alternative history; the report of several pages is their sum.

    `rounds` is told with the first page: the saved rounds in the window. `totals` are of all decisions made again,
    `shared` of those that choose a Supply both before and after.
    """

    decided: int
    untouched: int
    refused: int
    unreadable: int
    changed: int
    totals: BeforeAfter
    shared: BeforeAfter
    moves: list[ChoiceMove]
    examples: list[WhatIfExample]
    rounds: int | None
    next_page_token: str
