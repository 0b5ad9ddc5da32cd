"""The books of one shared Hold (COST-9), step by step."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.routing.app.calls.shared_hold import SharedHold

STEPS = st.lists(
    st.tuples(st.sampled_from(("draw", "add", "end", "lose")), st.integers(0, 40), st.integers(1, 4)),
    min_size=20,  # by themselves most are too short for anything to be drawn and to end
    max_size=60,
)


@given(held=st.integers(0, 100), tries=st.integers(0, 20), steps=STEPS)
@pytest.mark.hypothesis
def test_what_is_drawn_and_spent_is_held(held: int, tries: int, steps: list[tuple[str, int, int]]) -> None:
    """COST-9: in whatever order, draws of calls under way and costs of ended ones come to no more than is held, as long
    as no provider charges more than was drawn for it; what is spent is the sum of the costs."""
    shared = SharedHold("calls:1", "CNY", Decimal(held), tries, 0.0)
    under_way: list[Decimal] = []
    costs = lost = Decimal(0)
    for act, amount, most in steps:
        if act == "draw" and shared.draw(Decimal(amount), most):
            under_way.append(Decimal(amount))
        elif act == "add" and under_way and shared.add(Decimal(amount)):
            under_way[-1] += amount
        elif act == "end" and under_way:
            drawn = under_way.pop(0)
            cost = min(drawn, Decimal(amount))
            costs += cost
            shared.ended(drawn, cost, 1)
        elif act == "lose" and under_way:
            lost += under_way.pop()
            shared.lost()
            assert not shared.sound
        assert sum(under_way) + costs + lost == shared.claim(Decimal(0)) <= shared.held
        assert (shared.spent, shared.open) == (costs, len(under_way))
