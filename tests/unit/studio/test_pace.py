"""When tokens are due, and what the script changes of it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.studio.domain.pace import Pace, pace_of
from services.studio.domain.script import Flow, ScriptError, read_step
from services.studio.settings import StudioConfig

LUMEN = replace(StudioConfig.default().accounts["lumen"], first_token_s=0.5, tokens_per_s=10, speed=1)


def test_the_account_sets_the_pace_and_speed_divides_it():
    """The first token after its wait, each further one a tenth of a second later; twice as fast is half of both."""
    pace = pace_of(LUMEN, Flow())
    assert [pace.due(count) for count in (0, 1, 2, 11)] == pytest.approx([0.5, 0.5, 0.6, 1.5])
    assert pace_of(replace(LUMEN, speed=2), Flow()).due(11) == pytest.approx(0.75)
    assert pace_of(replace(LUMEN, tokens_per_s=0), Flow()).due(11) == 0.5


def test_what_is_thought_delays_the_first_token():
    """Reasoning takes the time of its tokens."""
    assert pace_of(LUMEN, Flow(), thought=20).due(1) == pytest.approx(2.5)


def test_the_script_takes_the_place_of_the_pace():
    """first_token_s and token_gap_s replace, a stall is added once."""
    flow = read_step({"first_token_s": 3, "token_gap_s": 2, "stall_after": 2, "stall_s": 100}).flow
    assert [pace_of(LUMEN, flow).due(count) for count in (1, 2, 3, 4)] == [3, 5, 107, 109]


@given(st.floats(0, 10), st.floats(0, 2), st.integers(-1, 20), st.floats(0, 50), st.floats(0, 100), st.integers(0, 30))
def test_what_was_said_is_what_was_due(first_s, gap_s, after, stall_s, elapsed_s, total):
    """After any time exactly the tokens that were due have been said."""
    pace = Pace(first_s, gap_s, after, stall_s)
    said = pace.said(elapsed_s, total)
    assert said == sum(pace.due(count) <= elapsed_s for count in range(1, total + 1))


@pytest.mark.parametrize(
    "step",
    [{"stall_after": 3}, {"stall_s": 3}, {"cut_after": -1}, {"first_token_s": -1}, {"error_after": "soon"}],
)
def test_a_flow_that_cannot_be_meant_is_refused(step):
    """Half a stall, negative places and words for numbers are errors."""
    with pytest.raises(ScriptError):
        read_step(step)
