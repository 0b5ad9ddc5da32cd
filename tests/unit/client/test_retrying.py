"""What a caller may repeat, and when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.client.faults import PointsmanError, Problem, RunUnsuccessful, Unreachable, problem_of, seconds_in
from libs.client.retrying import Patience, Safety, pause_s, repeatable
from libs.client.shapes import Run
from libs.faults.registry import CODES


def problem(code: str, status: int = 0, retry_after_s: float | None = None) -> Problem:
    """As the server tells it."""
    entry = CODES.get(code)
    found = status or (entry.http_status if entry else 500)
    return Problem(found, code, code, bool(entry and entry.retryable), retry_after_s=retry_after_s)


@pytest.mark.parametrize(
    "error, safe, unsafe",
    [
        (Unreachable("refused", sent=False), True, True),
        (Unreachable("reset"), True, False),
        (problem("quota_full"), True, True),
        (problem("capacity_exhausted"), True, True),
        (problem("overloaded"), True, True),
        (problem("governance_backend_down"), True, True),
        (problem("peer_unavailable"), True, False),
        (problem("retry_exhausted"), True, False),
        (problem("stalled"), True, False),
        (problem("deadline_exceeded"), True, False),
        (problem("idempotency_in_progress"), True, False),
        (problem("", 502), True, False),
        (problem("", 429), True, False),
        (problem("a_code_of_tomorrow", 503), True, False),
        (Problem(409, "a_code_of_tomorrow", "x", retryable=True), True, False),
        (problem("internal"), False, False),
        (problem("validation_failed"), False, False),
        (problem("content_rejected"), False, False),
        (problem("unauthenticated"), False, False),
        (problem("forbidden"), False, False),
        (problem("not_found"), False, False),
        (problem("idempotency_conflict"), False, False),
        (problem("run_terminal"), False, False),
        (problem("a_code_of_tomorrow", 418), False, False),
        (Problem(422, "a_code_of_tomorrow", "x", retryable=True), False, False),
        (RunUnsuccessful(Run("r", "failed")), False, False),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_repeated(error: PointsmanError, safe: bool, unsafe: bool) -> None:
    """CLIENT-1: network faults, 429 and temporary 5xx; what is not safe only where nothing was made."""
    assert (repeatable(error, Safety.SAFE), repeatable(error, Safety.UNSAFE)) == (safe, unsafe)


@given(
    tries=st.integers(1, 8),
    tried=st.integers(1, 80),
    spent=st.floats(0, 100),
    chance=st.floats(0, 1, exclude_max=True),
    after=st.none() | st.floats(0, 100),
)
def test_pauses_are_bounded(tries: int, tried: int, spent: float, chance: float, after: float | None) -> None:
    """CLIENT-1: never before Retry-After, never beyond the bounds, and not for ever."""
    patience = Patience(tries=tries, first_s=0.5, longest_s=8.0, total_s=60.0)
    wait = pause_s(patience, tried, spent, problem("quota_full", retry_after_s=after), chance)
    if tried >= tries:
        assert wait is None
    elif wait is None:
        assert spent + (after or 0.0) + 8.0 >= 60.0
    else:
        assert (after or 0.0) <= wait <= (after or 0.0) + min(8.0, 0.5 * 2 ** (tried - 1))
        assert spent + wait < 60.0


@given(st.integers(1, 5))
def test_pauses_grow_and_differ(tried: int) -> None:
    """CLIENT-1: the ceiling doubles, and chance spreads callers below it."""
    patience = Patience(tries=9, first_s=0.5, longest_s=1000.0)
    error = Unreachable("x")
    assert pause_s(patience, tried, 0.0, error, 0.5) == 0.25 * 2 ** (tried - 1)
    assert pause_s(patience, tried, 0.0, error, 0.0) == 0.0


@pytest.mark.parametrize("wrong", [{"tries": 0}, {"first_s": 0}, {"total_s": -1}])
def test_patience_that_cannot_be(wrong: dict[str, int]) -> None:
    """CLIENT-1: bounds are checked where they are set."""
    with pytest.raises(ValueError):
        Patience(**wrong)  # type: ignore[arg-type]  # whole numbers are seconds too


@given(st.integers(100, 599), st.none() | st.text() | st.integers() | st.lists(st.none()) | st.dictionaries(
    st.sampled_from(["code", "detail", "title", "retryable", "errors", "category"]),
    st.none() | st.booleans() | st.text() | st.lists(st.none() | st.dictionaries(st.text(), st.text(), max_size=2)),
))  # fmt: skip
def test_any_answer_is_a_problem(status: int, body: object) -> None:
    """CLIENT-1: whatever answers, and in whatever shape, is survived."""
    found = problem_of(status, body, None)
    assert found.status == status
    assert str(found)
    assert isinstance(repeatable(found, Safety.SAFE), bool)


@pytest.mark.parametrize(
    "text, seconds", [("7", 7.0), (" 7 ", 7.0), ("", None), (None, None), ("soon", None), ("-1", None), ("1.5", None),
                      ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("9" * 30, None)]
)  # fmt: skip
def test_retry_after_in_its_spellings(text: str | None, seconds: float | None) -> None:
    """CLIENT-1: seconds are read; a date, or nonsense, is as if nothing had been said."""
    assert seconds_in(text) == seconds
