"""How outcomes are dealt, how thresholds are read, what the ladder allows, what figures prove."""

from datetime import timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.faults.registry import CODES, Category, Scope
from services.health.domain.ladder import UNLIMITED_AS, allowed_slots
from services.health.domain.observations import (
    OWN_CODES,
    Failed,
    Failure,
    Family,
    Outcome,
    Success,
    SupplyFailure,
    dealt,
    family,
)
from services.health.domain.states import State
from services.health.domain.statistics import rates, recorded, wilson
from services.health.domain.thresholds import Thresholds
from tests.support.worlds import START


def outcome(failed: Failed | None) -> Outcome:
    """An outcome of epochs 3 and 5."""
    return Outcome("one", "a", "a/x", 3, 5, failed, START, START)


def test_a_success_is_observed_by_both() -> None:
    """HLT-6: each machine compares the epoch of its own subject."""
    assert dealt(outcome(None)) == (Success("one", 3, START), Success("one", 5, START))


@pytest.mark.parametrize("category, scope", list(product(Category, Scope)))
def test_impact_follows_the_table(category: Category, scope: Scope) -> None:
    """HLT-5: content, request and unknown have no impact; supply and capacity bear on what their scope names."""
    channel, supply = dealt(outcome(Failed(category, scope, "new_code")))
    if category not in (Category.SUPPLY, Category.CAPACITY) or scope in (Scope.REQUEST, Scope.ATTEMPT):
        assert (channel, supply) == (None, None)
    elif scope is Scope.CHANNEL:
        assert isinstance(channel, Failure)
        assert supply is None
    else:
        assert isinstance(supply, Failure)
        assert isinstance(channel, SupplyFailure) == (category is Category.SUPPLY)


WANTED = {
    "key_invalid": Family.ACCOUNT, "account_forbidden": Family.ACCOUNT, "balance_exhausted": Family.ACCOUNT,
    "connect_failed": Family.CONNECT, "model_unavailable": Family.MODEL, "provider_error": Family.SERVER,
    "provider_timeout": Family.SERVER, "malformed_reply": Family.SERVER, "task_lost": Family.SERVER,
    "rate_limited": Family.CAPACITY, "out_of_stock": Family.CAPACITY,
}  # fmt: skip


def test_every_code_of_the_registry_has_its_family() -> None:
    """HLT-5, HLT-8: every code is named here or has no impact; our own refusals say nothing of a provider."""
    for code in CODES.values():
        found = family(Failed(code.category, code.scope, code.name))
        assert found is WANTED.get(code.name), code.name
    assert CODES.keys() >= OWN_CODES


@pytest.mark.parametrize(
    "slots, quarters",
    [(1, (1, 1, 1)), (2, (1, 1, 1)), (3, (1, 2, 2)), (4, (1, 2, 3)), (5, (2, 3, 4)), (8, (2, 4, 6)), (20, (5, 10, 15))],
)
def test_the_rungs(slots: int, quarters: tuple[int, int, int]) -> None:
    """HLT-2, HLT-3: 1, then 25, 50, 75 % rounded up with one slot left closed; one slot stays one."""
    assert tuple(allowed_slots(State.RECOVERING, n, slots) for n in (2, 3, 4)) == quarters
    assert allowed_slots(State.PROBING, 0, slots) == 1


@given(st.integers(2, 10_000), st.integers(2, 4))
def test_recovering_leaves_a_slot_closed(slots: int, successes: int) -> None:
    """HLT-3: effective = min(C - 1, ceil(C x f)), never zero, never falling with the rungs."""
    allowed = allowed_slots(State.RECOVERING, successes, slots)
    assert allowed == min(slots - 1, -(-slots * (successes - 1) // 4))
    assert 1 <= allowed < slots


def test_shut_and_closed_states() -> None:
    """HLT-2, HLT-9, HLT-11: shut states allow none, closed ones do not limit; without a gate it recovers as eight."""
    assert [allowed_slots(state, 0, 4) for state in (State.CIRCUIT_OPEN, State.DISABLED)] == [0, 0]
    assert [allowed_slots(state, 0, 4) for state in (State.HEALTHY, State.DEGRADED)] == [None, None]
    assert allowed_slots(State.RECOVERING, 2, 0) == allowed_slots(State.RECOVERING, 2, UNLIMITED_AS)


def test_defaults_and_overrides() -> None:
    """HLT-8: the defaults of the specification; a given cooldown holds for every trigger that has none of its own."""
    defaults = Thresholds.of()
    assert (defaults.cooldown_s, defaults.account_cooldown_s, defaults.capacity_cooldown_s) == (60, 300, 30)
    assert (defaults.connect_failures, defaults.consecutive_failures, defaults.capacity_failures) == (2, 3, 5)
    assert (defaults.escalation_supplies, defaults.escalation_window_s, defaults.window_s) == (2, 60, 60)
    assert (defaults.failure_rate, defaults.failure_rate_min, defaults.degraded_rate) == (0.5, 20, 0.2)
    assert (defaults.degraded_failures, defaults.degraded_successes, defaults.eased_rate) == (2, 5, 0.1)
    short = Thresholds.of(cooldown_s=3)
    assert (short.account_cooldown_s, short.capacity_cooldown_s) == (3, 3)
    assert Thresholds.of(cooldown_s=3, account_cooldown_s=9).account_cooldown_s == 9
    assert Thresholds.of(account_cooldown_s=None) == defaults


@pytest.mark.parametrize(
    "name, value",
    [("cooldown_s", -1), ("window_s", 0), ("failure_rate", 1.5), ("connect_failures", 0), ("cooldown_s", float("nan"))],
)
def test_figures_that_cannot_work_are_named(name: str, value: float) -> None:
    """HLT-8: a threshold that cannot work is refused by name."""
    with pytest.raises(ValueError, match=name):
        Thresholds.of(**{name: value})


@given(st.integers(1, 500), st.data())
def test_the_interval_holds_the_share(samples: int, data: st.DataObject) -> None:
    """HLT-13: 0 <= low <= share <= high <= 1, and more samples prove more."""
    good = data.draw(st.integers(0, samples))
    low, high = wilson(good, samples)
    assert 0 <= low <= good / samples + 1e-12
    assert good / samples - 1e-12 <= high <= 1
    wide_low, wide_high = wilson(good, samples)
    narrow_low, narrow_high = wilson(good * 10, samples * 10)
    assert narrow_high - narrow_low < wide_high - wide_low


def test_wilson_by_the_book() -> None:
    """HLT-13: 9 of 10 is 59.6 % to 98.2 % at 95 %."""
    low, high = wilson(9, 10)
    assert (round(low, 3), round(high, 3)) == (0.596, 0.982)


@given(st.lists(st.tuples(st.integers(0, 200), st.booleans()), max_size=60))
def test_the_window_counts_the_last_minute(outcomes: list[tuple[int, bool]]) -> None:
    """HLT-13: in whatever order outcomes arrive, the window holds those of the 60 s before the newest."""
    window: tuple = ()
    for second, good in outcomes:
        window = recorded(window, START + timedelta(seconds=second), good, 60.0)
    newest = max((second for second, _ in outcomes), default=0)
    found = rates(window, START + timedelta(seconds=newest), 60.0)
    recent = [good for second, good in outcomes if second > newest - 60]
    assert (found.good, found.samples) == (sum(recent), len(recent))
    assert len(window) <= 60
