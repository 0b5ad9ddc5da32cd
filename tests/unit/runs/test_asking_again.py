"""What a level refused asks again once it has room, whoever made it."""

from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.runs.app.command_run import pause_run, resume_run
from services.runs.domain.deciding import Verdict
from services.runs.domain.run import Decision, NodeState, Run, RunState
from tests.unit.runs.house import House, states
from tests.unit.runs.test_gates import FRAME, fan_out, house, production, shots
from tests.unit.runs.test_limits import gates

FILM = "film"
UNDER = {"currency": "CNY", "parent": FILM}


async def full(home: House, *documents: dict[str, Any], room: str = "2.00") -> list[Run]:
    """These Runs under one level in which another has spent all that there was."""
    home.budgets.hard[FILM] = Decimal(room)
    home.budgets.held["other"] = (FILM, Decimal(room))
    home.budgets.over.add("other")
    home.budgets.booked["other"] = Decimal(room)
    runs = [await home.carry(await home.produce(document)) for document in documents]
    assert [run.nodes["frame"].state for run in runs] == [NodeState.WAITING_HUMAN] * len(runs)
    return runs


def frame(**fields: Any) -> dict[str, Any]:
    """A picture under that level. It may come to 2.00."""
    return production(FRAME | fields, budget=UNDER)


async def looked(home: House, *runs: Run) -> list[Run]:
    """They, after one look for room."""
    await home.again.look()
    return [await home.carry(run) for run in runs]


async def withdrawals(home: House, run: Run) -> list[str]:
    """Why its questions were withdrawn."""
    return [str(told["cause"]) for told in await home.said(run, "review_withdrawn")]


async def test_a_raise_for_one_run_lets_the_others_ask_again() -> None:
    """COST-10, HUMAN-2: all that a level refused ask again after a raise, those of other Runs too, and their reviews
    are withdrawn with the reason."""
    home = house()
    first, second, third = await full(home, frame(), frame(), frame(value_class="background"))
    first = await home.decide(first, "raise_budget", budget={"currency": "CNY", "amount": "9.00"})
    assert [states(await home.now(run))["frame"] for run in (first, second)] == ["succeeded", "waiting_human"]
    for run in await looked(home, second, third):
        assert run.state is RunState.SUCCEEDED
        assert await withdrawals(home, run) == ["film has room again: what waited for it goes on"]
        assert await home.reviews(run) == []
        await home.rebuilds(run)


def more(amount: str, who: str = "lena") -> Verdict:
    """That amount, as the new limit."""
    return Verdict(Decision.RAISE_BUDGET, who, budget={"currency": "CNY", "amount": amount})


async def test_of_two_grants_at_once_the_lower_takes_nothing_back() -> None:
    """COST-10, HUMAN-2: both are on record before the ledger hears either; it keeps the higher one whoever comes last,
    and who finds no room under it asks a person anew."""
    home = house()
    one, two = await full(home, frame(), frame())
    (first,), (second,) = await home.reviews(one), await home.reviews(two)
    await home.people.decide("a", first.id, more("4.50"), "")
    await home.people.decide("a", second.id, more("4.00", "omar"), "")
    one, two = await home.carry(one), await home.carry(two)
    assert [limit for _, limit, _ in home.budgets.raised] == [Decimal("4.50"), Decimal("4.00")]
    assert home.budgets.hard[FILM] == Decimal("4.50")
    (two,) = await looked(home, two)  # what the first one held is settled by now
    assert [states(run)["frame"] for run in (one, two)] == ["succeeded", "waiting_human"]
    (again,) = await home.reviews(two)
    assert again.id != second.id
    assert "of 4.50 are taken" in again.question.cause
    two = await home.decide(two, "raise_budget", budget={"currency": "CNY", "amount": "6.00"})
    assert two.state is RunState.SUCCEEDED
    for run in (one, two):
        await home.rebuilds(run)


async def test_who_decides_later_is_told_how_the_level_stands() -> None:
    """COST-10, HUMAN-2: what another decision has made of the level since is named with its figures; nothing is on
    record, and nothing is lowered."""
    home = house()
    one, two = await full(home, frame(), frame())
    (later,) = await home.reviews(two)
    await home.decide(one, "raise_budget", budget={"currency": "CNY", "amount": "4.00"})

    async def refused(amount: str) -> str:
        with pytest.raises(Fault) as caught:
            await home.people.decide("a", later.id, more(amount), "")
        assert [error.pointer for error in caught.value.errors] == ["/budget/amount"]
        return caught.value.message

    assert "must be above 4.00, which is the limit by now" in await refused("4.00")
    told = "must be at least 5.00: 3.00 is spent and held by now, and 2 is asked for"
    assert told in await refused("4.10")
    home.budgets.hard[FILM] = Decimal(0)
    assert "is no limit any more; approve lets what waits go on" in await refused("6.00")
    home.budgets.hard[FILM] = Decimal("4.00")
    assert (await home.reviews(two), home.budgets.raised[1:]) == ([later], [])
    two = await home.decide(two, "raise_budget", budget={"currency": "CNY", "amount": "6.00"})
    assert two.state is RunState.SUCCEEDED


async def test_another_limit_is_another_decision() -> None:
    """HUMAN-2: the same decision again is harmless; another amount afterwards is a conflict, and the first stands."""
    home = house()
    (run,) = await full(home, frame())
    (review,) = await home.reviews(run)
    first, other = ({"currency": "CNY", "amount": amount} for amount in ("9.00", "8.00"))
    for _ in range(2):
        verdict = Verdict(Decision.RAISE_BUDGET, "lena", budget=first)
        assert (await home.people.decide("a", review.id, verdict, "")).state == "decided"
    with pytest.raises(Fault) as caught:
        await home.people.decide("a", review.id, Verdict(Decision.RAISE_BUDGET, "lena", budget=other), "")
    assert (caught.value.code, "look at the queue again" in caught.value.message) == ("conflict", True)
    await home.carry(run)
    assert [limit for _, limit, _ in home.budgets.raised] == [Decimal("9.00")]


@pytest.mark.parametrize("cost", ["0.00", "0.10"])
async def test_what_comes_free_elsewhere_is_asked_for(cost: str) -> None:
    """COST-9, COST-10: refunds of others let in those that fit, no more of them than there is room for, and the others
    keep the review that they have."""
    home = house()
    runs = await full(home, frame(), frame(), room="4.00")
    home.routing.answering = False
    (_, kept) = [review.id for run in runs for review in await home.reviews(run)]
    home.budgets.booked["other"] = Decimal(cost) + 1
    one, two = await looked(home, *runs)
    assert (states(one)["frame"], states(two)["frame"]) == ("running", "waiting_human")
    assert "budget_freed" not in await home.kinds(two)
    home.budgets.booked["other"] = Decimal(0)
    (two,) = await looked(home, two)
    assert states(two)["frame"] == "running"
    assert (await home.people.review("a", kept)).state == "withdrawn"


async def test_nothing_is_asked_without_room() -> None:
    """COST-10: however often the level is looked at, once for all that wait there, nobody asks it and nothing is
    written; a level that cannot be read now is read at the next look."""
    home = house()
    runs = await full(home, frame(), production(fan_out(shots(3)), FRAME, budget=UNDER))
    before = [(await home.now(run)).last_sequence for run in runs]
    asked = list(home.budgets.asked)
    for _ in range(5):
        await looked(home, *runs)
    assert home.budgets.read == [FILM] * 5
    assert ([(await home.now(run)).last_sequence for run in runs], home.budgets.asked) == (before, asked)
    home.budgets.hard[FILM] = Decimal("90.00")
    home.budgets.unread = Fault.of("peer_unavailable", "away")
    assert [run.state for run in await looked(home, *runs)] == [RunState.RUNNING] * 2
    home.budgets.unread = None
    assert [run.state for run in await looked(home, *runs)] == [RunState.SUCCEEDED] * 2


async def test_a_paused_run_asks_when_it_is_resumed() -> None:
    """COST-10, RUN-1a: room that comes while it is paused is found afterwards."""
    home = house()
    (run,) = await full(home, frame())
    await pause_run(home.desk, "a", run.id, "wait", "pause-1")
    home.budgets.hard[FILM] = Decimal("9.00")
    (run,) = await looked(home, run)
    assert states(run)["frame"] == "waiting_human"
    await resume_run(home.desk, "a", run.id, "go on", "resume-1")
    (run,) = await looked(home, run)
    assert run.state is RunState.SUCCEEDED


async def test_minutes_and_a_moved_deadline_are_found_again() -> None:
    """COST-10: a look for which there were no minutes, and a node that came after the deadline, ask again as well."""
    home = house()
    home.budgets.most = {(FILM, "review_minutes"): 5}
    tight = {"currency": "CNY", "cost": "9.00", "review_minutes": 5}
    run = await home.carry(await home.produce(production(*gates("good"), budget=tight)))
    assert [review.question.kind for review in await home.reviews(run)] == ["budget"]
    home.budgets.most[run.budget_id, "review_minutes"] = 30
    (run,) = await looked(home, run)
    assert [review.question.kind for review in await home.reviews(run)] == ["gate"]
    late = await home.produce(production(FRAME))
    home.budgets.late = {late.budget_id}
    late = await home.carry(late)
    (after,) = await looked(home, late)
    assert (states(after)["frame"], after.last_sequence) == ("waiting_human", late.last_sequence)
    home.budgets.late = set()
    (late,) = await looked(home, late)
    assert late.state is RunState.SUCCEEDED
    await home.rebuilds(late)


async def test_what_nobody_counted_waits_for_a_person() -> None:
    """COST-10: where no minutes can be held for a reason that no room mends, nothing asks again by itself."""
    home = house()
    home.budgets.short = Fault.invalid(("/asked", "there is no rate"))
    run = await home.carry(await home.produce(production(*gates("good"))))
    (after,) = await looked(home, run)
    assert (after.last_sequence, home.budgets.read) == (run.last_sequence, [])
