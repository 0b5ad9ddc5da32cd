"""A level in which only Holds of work under way stand in the way: a node waits for these before anybody is asked."""

from decimal import Decimal

import pytest

from services.runs.domain.run import NodeState, Run, RunState
from tests.unit.runs.house import House, states
from tests.unit.runs.test_asking_again import FILM, frame, looked
from tests.unit.runs.test_gates import FRAME, fan_out, house, production, shots


async def behind(home: House, room: str = "2.00") -> Run:
    """A Run whose node finds what another has under way holding all that there is."""
    home.budgets.hard[FILM] = Decimal(room)
    home.budgets.held["other"] = (FILM, Decimal(room))
    return await home.carry(await home.produce(frame()))


def settle(home: House, cost: str) -> None:
    """The other's Hold, at what it really cost."""
    home.budgets.over.add("other")
    home.budgets.booked["other"] = Decimal(cost)


async def quiet(home: House, run: Run) -> bool:
    """Whether it waits with its reason, and nobody was asked or told."""
    node = (await home.now(run)).nodes["frame"]
    said = "budget: project film has no room until what is under way there is settled"
    assert (node.state, node.waiting_reason, node.refused) == (NodeState.LEASED, said, True)
    return (await home.reviews(run), home.alerts.told) == ([], [])


async def test_a_node_waits_for_room_before_a_person_is_asked() -> None:
    """COST-10: what is held may come free; until then nobody asks the level, and nothing is written."""
    home = house()
    run = await behind(home)
    assert await quiet(home, run)
    asked, last = list(home.budgets.asked), (await home.now(run)).last_sequence
    for _ in range(5):
        (run,) = await looked(home, run)
    assert (home.budgets.asked, run.last_sequence, await quiet(home, run)) == (asked, last, True)
    settle(home, "0.00")
    (run,) = await looked(home, run)
    assert run.state is RunState.SUCCEEDED
    assert "review_opened" not in await home.kinds(run)
    await home.rebuilds(run)


@pytest.mark.parametrize("cost", ["0.50", "2.00"])
async def test_what_is_spent_in_the_end_asks_a_person(cost: str) -> None:
    """COST-10: once what the other cost leaves no room, the level is asked again, and then a person is."""
    home = house()
    run = await behind(home)
    settle(home, cost)
    (run,) = await looked(home, run)
    assert states(run)["frame"] == "waiting_human"
    (review,) = await home.reviews(run)
    assert (review.question.kind, review.question.root_cause) == ("budget", f"budget:{FILM}")
    run = await home.decide(run, "raise_budget", budget={"currency": "CNY", "amount": "9.00"})
    assert run.state is RunState.SUCCEEDED
    await home.rebuilds(run)


async def test_spent_money_asks_at_once_whatever_is_held_beside_it() -> None:
    """COST-10: where what is spent leaves no room, waiting mends nothing."""
    home = house()
    home.budgets.held["past"] = (FILM, Decimal("1.50"))
    home.budgets.over.add("past")
    home.budgets.booked["past"] = Decimal("1.50")
    run = await behind(home, room="3.00")
    assert states(run)["frame"] == "waiting_human"
    assert len(await home.reviews(run)) == 1


async def test_who_waits_for_room_takes_no_place_of_others() -> None:
    """COST-10, RUN-2: nodes that wait for room count as none at work, and a cancel ends them."""
    home = house()
    home.budgets.hard[FILM] = Decimal("2.00")
    home.budgets.held["other"] = (FILM, Decimal("2.00"))
    budget = {"currency": "CNY", "parent": FILM}
    run = await home.carry(await home.produce(production(fan_out(shots(9)), FRAME, budget=budget)))
    waiting = [node for node in run.nodes.values() if node.refused]
    assert len(waiting) >= 9
    assert {node.state for node in waiting} == {NodeState.LEASED}
    settle(home, "0.00")
    home.budgets.hard[FILM] = Decimal("90.00")
    (run,) = await looked(home, run)
    assert run.state is RunState.SUCCEEDED
