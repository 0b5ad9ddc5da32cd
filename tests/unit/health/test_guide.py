"""The diagram in the guide."""

from services.health.domain.states import TABLE, Signal, State, diagram
from tests.unit.health.guide import GUIDE, redrawn


def test_the_diagram_is_drawn_from_the_table() -> None:
    """HLT-1, HLT-2, HLT-4: the guide shows the table in force; `python -m tests.unit.health.guide` redraws it."""
    text = GUIDE.read_text()
    assert text == redrawn(text)
    assert diagram() in text


def test_the_table_is_whole() -> None:
    """HLT-11: every state can be left and reached, every signal is used, disabled is left by an operator alone."""
    assert {state for state, _ in TABLE} == set(State) == {move.to for move in TABLE.values()}
    assert {signal for _, signal in TABLE} == set(Signal)
    assert [signal for state, signal in TABLE if state is State.DISABLED] == [Signal.SWITCHED_ON]


def test_the_epoch_rises_where_writers_must_be_fenced() -> None:
    """HLT-6: opening, disabling and enabling begin a new epoch; probing, steps and recovery do not."""
    raising = {move.event for move in TABLE.values() if move.new_epoch}
    assert raising == {"opened", "reopened", "enabled", "disabled"}
